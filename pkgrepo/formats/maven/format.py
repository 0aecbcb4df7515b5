"""The Maven format: artifacts for Maven, Gradle, Ivy and sbt, in the Maven 2 repository layout."""

from __future__ import annotations

from functools import partial

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
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document
from pkgrepo.proxy.format import OwnFacts, Proxied
from pkgrepo.repositories.format import Tree, VersionKinds

from .configuration import CONFIGURATIONS
from .facts import FACTS
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
from .paths import ALGORITHMS, METADATA_NAMES
from .push_rules import find_package_of, refuses
from .routes import ROUTES, take_file
from .setup import install_snippets, snippets
from .version_order import sort_key


def maven() -> Format:
    """The format with its caches and its running deployments."""
    caches = MavenCaches(make_documents())
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        package_key=parse_package_key,
        heeds_yanks=False,
        version_key=parse_version,
        refuses=refuses,
        index=index_artifact,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease, snapshot=is_literal_snapshot, build=build_of),
        accepts=accepts,
        ranges=RANGES,
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
        branches=lambda services, _tokens: dict.fromkeys(FACTS.branch_names, SearchSite(services).app.resource()),
        background=lambda services, reactor: [
            PeriodicTask(
                partial(resume_interrupted, services, FACTS.name, caches),
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
