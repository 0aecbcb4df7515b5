"""The npm format: the registry that npm, pnpm, yarn and bun talk to."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.formats.npm import paths
from pkgrepo.formats.npm.change.requests import change_tag
from pkgrepo.formats.npm.document_requests import take_file
from pkgrepo.formats.npm.drilled import DRILLED
from pkgrepo.formats.npm.inside import CONTENTS, DIFFERS, SOURCES, look, shape_of
from pkgrepo.formats.npm.packument.document import FULL, SHORT
from pkgrepo.formats.npm.packument.requests import Caches
from pkgrepo.formats.npm.packument.splicing import KINDS, find_latest, make_packuments, read_parts, rewind, splice
from pkgrepo.formats.npm.provenance import ATTESTS
from pkgrepo.formats.npm.proxied.normaliser import kept_text
from pkgrepo.formats.npm.proxied.upstream import (
    attestations_question,
    packument_question,
    read_declared,
    release_of,
    restore_packument,
)
from pkgrepo.formats.npm.publish.requests import approved
from pkgrepo.formats.npm.ranges import RANGES, accepts
from pkgrepo.formats.npm.token_exchange import ROOT_EXCHANGES
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments, Selection
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.format_site import serve
from pkgrepo.gateway.publishing.uploads import UploadField, Uploads
from pkgrepo.model import RepositoryType, Version
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document_of
from pkgrepo.proxy.format import OwnFacts, Proxied
from pkgrepo.repositories.format import Layout, VersionKinds
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.semver import is_prerelease, padded

from .configuration import CONFIGURATIONS
from .facts import FACTS
from .imported import IMPORTED
from .indexing import index_package, index_removed
from .mirrored import MIRRORED
from .names import package_key
from .routes import ROUTES
from .semver import parse_version
from .setup import install_snippets, snippets

# One of which a registry has: mirrors of files have no ping, and Gitea has packages and a search only.
PROBES = ("-/ping", "", "-/v1/search?text=npm&size=1")


def npm() -> Format:
    """The format with its caches."""
    caches = Caches(make_packuments())
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        lists_noted=frozenset({RepositoryType.HOSTED, RepositoryType.PROXY}),
        package_key=package_key,
        version_key=lambda text: parse_version(text).text,
        index=index_package,
        index_removed=index_removed,
        approved=approved,
        versions=VersionKinds(sort=lambda text: parse_version(padded(text)).sort, prerelease=is_prerelease),
        single_file=True,
        runs_at_install=lambda meta, _paths: bool(meta.get("hasInstallScript")) if meta else None,
        inside=look,
        attests=ATTESTS,
        contents=CONTENTS,
        differs=DIFFERS,
        sources=SOURCES,
        shape_of=shape_of,
        accepts=accepts,
        ranges=RANGES,
        layout=Layout(path=paths.readable_path),
        resource=serve(ROUTES, caches),
        root_exchanges=ROOT_EXCHANGES,
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("npm",),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(
            repository=(ClientDocument(path="-/npm/v1/keys"),), package=_packument, version=_attestations
        ),
        change_tag=change_tag,
        uploads=Uploads(
            what="tarballs as npm pack makes them",
            names={".tgz": ".+", ".tar.gz": ".+"},
            take=take_file,
            fields=(UploadField("tag", "Tag (latest, unless package.json says another)"),),
            caches=caches,
        ),
        proxied=Proxied(
            document_request=packument_question,
            make_release=release_of,
            kinds=KINDS.__getitem__,
            declares=Declares((FULL,), read_declared),
            own_facts=OwnFacts(attestations=attestations_question, attestations_in=lambda top: kept_text(top).encode()),
            read_parts=read_parts,
            splice=splice,
            rewind=rewind,
            latest_form=SHORT,
            latest=lambda _name, members: find_latest(members),
            drilled=DRILLED,
            names_withheld=True,
        ),
        restore_documents=restored_document_of(packument_question, restore_packument),
        address=AddressShape(below=("/-/", "/package/")),
        probes=lambda url: [(f"{url}/{each}", (200,)) for each in PROBES],
        dated=True,
        caches=caches.packuments.caches("packuments"),
    )


def _packument(_key: str, name: str) -> Sequence[ClientDocument]:
    files = Selection(
        path=f"{name}/package.json",
        below=f"{name}/-/",
        files={"versions": ("dist", "tarball")},
        keys=("time",),
        values=("dist-tags",),
    )
    document = ClientDocument(
        path=f"{name}/index.json",
        address=name,
        accept="application/json",
        folder=name,
        absolute=True,
        selection=files,
        named=lambda path, _sha256: path.rpartition("/")[2],
    )
    return (document,)


def _attestations(name: str, version: Version) -> Sequence[ClientDocument]:
    has_any = "attestations" in (version.meta.get("dist") or {})
    return (ClientDocument(path=f"-/npm/v1/attestations/{name}@{version.text}"),) if has_any else ()
