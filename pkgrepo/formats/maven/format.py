"""The Maven format: artifacts for Maven, Gradle, Ivy and sbt, in the Maven 2 repository layout."""

from __future__ import annotations

from functools import partial
from typing import Final

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.formats.maven.caches import MavenCaches, StopWithServer
from pkgrepo.formats.maven.deploy.work import EVERY_S, resume_interrupted
from pkgrepo.formats.maven.metadata.document import UPLOADED
from pkgrepo.formats.maven.metadata.joining import (
    ARTIFACT,
    KINDS,
    index_artifact,
    latest,
    make_documents,
    read_parts,
    render_directory,
    rewind,
    splice,
    split_key,
)
from pkgrepo.formats.maven.metadata.plugins import join_staged
from pkgrepo.formats.maven.proxied.questions import (
    described_by,
    file_question,
    metadata_question,
    probes,
    read_own,
    release_of,
    restore_metadata,
)
from pkgrepo.formats.maven.ranges import RANGES, accepts
from pkgrepo.formats.maven.search.requests import SearchSite
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format, Look
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document
from pkgrepo.proxy.format import OwnFacts, Proxied
from pkgrepo.repositories.format import Ecosystem, PackageUrls, Tree, VersionKinds
from pkgrepo.repositories.version_ranges import one_build

from .configuration import CONFIGURATIONS
from .imported import IMPORTED
from .mirrored import MIRRORED
from .names import (
    build_of,
    is_literal_snapshot,
    is_prerelease,
    package_directory,
    parse_package_key,
    parse_version,
)
from .owners import RIGHTS
from .paths import ALGORITHMS, METADATA_NAMES
from .push_rules import find_package_of, refuses
from .routes import ROUTES, take_file
from .setup import install_snippets, snippets
from .version_order import sort_key

NAME = "maven"

LOOK: Final = Look(
    icon=('<path d="M4 20c2-8 6.5-14 16-16-.5 5-2 9-6.5 11.5C11 17 8.5 17 6.2 16.6M8.5 12.5h5M11 9.5h5.3"/>'),
    light="#b5500d",
    dark="#ffa868",
    programs="Maven, Gradle, sbt",
    starter="maven",
)


def maven() -> Format:
    """The format with its caches and its running deployments."""
    caches = MavenCaches(make_documents())
    return Format(
        name=NAME,
        aliases=("java",),
        configurations=CONFIGURATIONS,
        package_key=parse_package_key,
        package_urls=PackageUrls(types=("maven",), name=lambda name: name.replace("/", ":", 1)),
        rights=RIGHTS,
        heeds_yanks=False,
        version_key=parse_version,
        refuses=refuses,
        index=index_artifact,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease, snapshot=is_literal_snapshot, build=build_of),
        accepts=accepts,
        ranges=RANGES,
        ecosystem=Ecosystem(name="Maven", package_key=parse_package_key, sort=sort_key, builds=one_build(sort_key)),
        tree=Tree(
            directory=_directory,
            document=render_directory,
            document_names=METADATA_NAMES,
            kept_kinds=(UPLOADED,),
            package_of=find_package_of,
        ),
        join_staged=join_staged,
        resource=serve(ROUTES, caches),
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("maven",),
        look=LOOK,
        setup=snippets,
        client_documents=ClientDocuments(
            folder=lambda folder: (ClientDocument(path=f"{folder}/{METADATA_NAMES[0]}".lstrip("/")),),
            beside=[f".{each}" for each in ALGORITHMS],
        ),
        uploads=Uploads(
            what="a jar or another file of a version, with its POM",
            names=dict.fromkeys((".jar", ".war", ".ear", ".aar", ".zip", ".pom"), ".+"),
            take=take_file,
            fields=(
                UploadField("pom", "POM (one is made if there is none)", file=True),
                UploadField("group", "Group (that of the POM, if it is empty)"),
                UploadField("artifact", "Artifact"),
                UploadField("version", "Version"),
                UploadField("path", "Path, or with a slash at its end a folder, of the file alone"),
            ),
            caches=caches,
        ),
        install=lambda _url, name, version: install_snippets(name, version),
        proxied=Proxied(
            document_request=metadata_question,
            file_request=file_question,
            make_release=release_of,
            kinds=KINDS.__getitem__,
            read_parts=read_parts,
            splice=splice,
            rewind=rewind,
            latest_form=ARTIFACT,
            latest=latest,
            package_of=lambda key: split_key(key)[0],
            own_facts=OwnFacts(
                data=frozenset({"licences"}), read=read_own, described_by=described_by, of_versions=True
            ),
        ),
        restore_documents=lambda reader, package: [
            restored_document(*each) for each in restore_metadata(reader, package)
        ],
        address=AddressShape(below=("/maven-metadata.xml", "/org/apache/")),
        probes=probes,
        # search, and questions as other repository servers are asked them
        branches=lambda services, _tokens: dict.fromkeys(
            ("solrsearch", "api/maven", "api/badge"), SearchSite(services).app.resource()
        ),
        background=lambda services, reactor: [
            PeriodicTask(
                partial(resume_interrupted, services, NAME, caches),
                reactor,
                every_s=EVERY_S,
                what="going on with deployments",
            )
        ],
        running=lambda: [StopWithServer(caches.running)],
        dated=True,
        caches=caches.documents.caches("maven metadata"),
    )


def _directory(package_key: str, version: str) -> str:
    top = package_directory(package_key)
    return f"{top}/{version}" if version else top
