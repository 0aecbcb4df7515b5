"""The conda format: a channel that conda, mamba and pixi install from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from packaging.utils import parse_wheel_filename

from pkgrepo.formats.conda import paths
from pkgrepo.formats.conda.anaconda.uploads import PostSite
from pkgrepo.formats.conda.index.documents import ChannelSource
from pkgrepo.formats.conda.index.packages import DERIVED, VERSIONS, index_package, latest, read_parts
from pkgrepo.formats.conda.inside import CONTENTS, DIFFERS, look
from pkgrepo.formats.conda.proxied.channels import MemberChannels
from pkgrepo.formats.conda.proxied.members import OWN, RECORDS, read_record
from pkgrepo.formats.conda.proxied.restoring import (
    channel_probes,
    explain_package,
    make_release,
    package_question,
    read_own,
    restore_documents,
)
from pkgrepo.formats.conda.versions import RANGES, accepts
from pkgrepo.formats.conda.wheels.following import WheelFollower
from pkgrepo.formats.conda.wheels.reading import FirstReads
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments, Selection
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.model import RepositoryType
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document
from pkgrepo.proxy.format import OwnFacts, Proxied
from pkgrepo.repositories.format import Layout, VersionKinds
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.publish.package_lists import PackageLists

from .configuration import CONFIGURATIONS
from .description import PURLS
from .facts import FACTS
from .imported import IMPORTED
from .mirrored import MIRRORED
from .names import BRANCH, check_name, version_key
from .routes import ROUTES, Caches, take_file
from .setup import install_snippets, snippets
from .versions import is_prerelease, sort_key

# Clients ask for those of their machine, also where a channel has no package of it.
USUAL_SUBDIRS = ("noarch", "linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
REPODATA = ("repodata.json", "current_repodata.json")


def conda() -> Format:
    """The format with its caches."""
    proxied = Proxied(
        document_request=package_question,
        make_release=make_release,
        kinds=lambda _form: (),  # clients ask for documents of folders
        declares=Declares(RECORDS, read_record),
        own_facts=OwnFacts(data=OWN, read=read_own),
        read_parts=lambda reader, repository_id, key, _form: read_parts(reader, repository_id, _package_of(key)),
        latest_form=VERSIONS,
        latest=lambda _key, members: latest(members),
        package_of=_package_of,
        document_of=lambda package_key, path: f"{path.partition('/')[0]}/{package_key}",
    )
    caches = Caches(PackageLists(ChannelSource()), MemberChannels(), FirstReads())
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        lists_noted=frozenset({RepositoryType.PROXY}),
        inside=look,
        contents=CONTENTS,
        differs=DIFFERS,
        package_key=check_name,
        version_key=version_key,
        index=index_package,
        versions=VersionKinds(sort=sort_key, prerelease=is_prerelease, self_dated=True),
        purls=_purls,
        accepts=accepts,
        ranges=RANGES,
        layout=Layout(folder=paths.readable_folder, places_vary=True),
        resource=serve(ROUTES, caches),
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("conda",),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(
            repository=[
                *(document for subdir in USUAL_SUBDIRS for document in _repodata(subdir)),
                ClientDocument(path="channeldata.json"),
            ],
            folder=_repodata,
        ),
        uploads=Uploads(
            what="conda packages",
            names={".conda": ".+-[^-]+-[^-]+", ".tar.bz2": ".+-[^-]+-[^-]+"},
            take=take_file,
            fields=(UploadField("path", "Folder of the channel (that of the package, if it is empty)"),),
            caches=caches,
        ),
        proxied=proxied,
        restore_lists=lambda reader, repository: [
            restored_document(*each) for each in restore_documents(reader, repository.id)
        ],
        address=AddressShape(below=("/noarch/", "/linux-64/", "/repodata.json")),
        probes=channel_probes,
        explain=partial(explain_package, proxied),
        dated=True,
        branches=lambda services, _tokens: {
            BRANCH: PostSite(services).app.resource()
        },  # anaconda-client sends files there
        background=lambda services, reactor: [WheelFollower(services, FACTS.name).service(reactor)],
    )


def _purls(meta: Mapping[str, Any], attributes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those in ``index.json``, as pixi reads them, and in ``about.json``; of a wheel, that of its project."""
    about = meta.get(PURLS)
    found = about.split(", ") if isinstance(about, str) else []
    for each in attributes:
        index, origin = each.get("index"), each.get(DERIVED)
        named = index.get(PURLS) if isinstance(index, dict) else None
        found += [text for text in named if isinstance(text, str)] if isinstance(named, list) else []
        if isinstance(origin, dict):
            project, version, *_ = parse_wheel_filename(str(origin.get("path")).rpartition("/")[2])
            found.append(f"pkg:pypi/{project}@{version}")
    return [each for each in dict.fromkeys(found) if each.startswith("pkg:")]


def _package_of(key: str) -> str:
    """The package of a document, whose key also has the folder."""
    return key.rpartition("/")[2]


def _repodata(subdir: str) -> Sequence[ClientDocument]:
    """The documents of a folder of the channel."""
    if not subdir:
        return ()
    first, *others = (f"{subdir}/{name}{ending}" for name in REPODATA for ending in ("", ".zst"))
    records = Selection(
        path=first,
        below=f"{subdir}/",
        files={"packages": (), "packages.conda": ()},
        whole=("info",),
    )
    document = ClientDocument(path=first, selection=records, named=lambda path, _sha256: path.rpartition("/")[2])
    return (document, *(ClientDocument(path=each) for each in others))
