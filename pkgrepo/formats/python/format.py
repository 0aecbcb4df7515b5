"""The Python format: simple index, uploads and JSON metadata (PEP 503, 592, 629, 658, 691, 700, 714, 740, 792)."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.formats.python import names, versions
from pkgrepo.formats.python.configuration import CONFIGURATIONS
from pkgrepo.formats.python.drilled import DRILLED
from pkgrepo.formats.python.facts import FACTS
from pkgrepo.formats.python.imported import IMPORTED
from pkgrepo.formats.python.index.indexing import KINDS, index_project, make_index, read_parts, rewind, splice
from pkgrepo.formats.python.index.pages import HELD_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_json import newest, read_listed
from pkgrepo.formats.python.index.project_lists import NAME_LISTS, PROJECT_LISTS, MergedLists
from pkgrepo.formats.python.index.requests import IndexCaches
from pkgrepo.formats.python.inside import CONTENTS, DIFFERS, OF_SOURCE, look
from pkgrepo.formats.python.mirrored import MIRRORED
from pkgrepo.formats.python.names import METADATA, normalise
from pkgrepo.formats.python.provenance import ATTESTS
from pkgrepo.formats.python.proxied.upstream import (
    INDEXES,
    container_of,
    described_by,
    index_probes,
    list_question,
    main_of,
    make_release,
    page_question,
    read_out,
    read_own,
    restore_page,
    without_metadata,
)
from pkgrepo.formats.python.ranges import RANGES, accepts
from pkgrepo.formats.python.routes import PythonSite
from pkgrepo.formats.python.setup import install_snippets, snippets
from pkgrepo.formats.python.token_exchange import ROOT_EXCHANGES
from pkgrepo.formats.python.upload.requests import take_file
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.publishing.uploads import Uploads
from pkgrepo.proxy.address_remarks import AddressShape
from pkgrepo.proxy.caching.questions import restored_document_of
from pkgrepo.proxy.format import Containers, Latest, LatestReason, MemberParts, OwnFacts, Proxied, merge_fragments
from pkgrepo.repositories.format import Layout, VersionKinds
from pkgrepo.repositories.publish.package_lists import PackageLists


def python() -> Format:
    """The format with its caches."""
    caches = IndexCaches(make_index(), PackageLists(PROJECT_LISTS), MergedLists(list_question()))
    return Format(
        **FACTS.fields,
        configurations=CONFIGURATIONS,
        package_key=normalise,
        version_key=versions.version_key,
        index=index_project,
        versions=VersionKinds(sort=lambda text: versions.parse_version(text)[1], prerelease=versions.is_prerelease),
        ranges=RANGES,
        # setup.py, or the build backend, of a source distribution
        runs_at_install=lambda _meta, files: not any(each.endswith(".whl") for each in files) if files else None,
        inside=look,
        attests=ATTESTS,
        contents=CONTENTS,
        differs=DIFFERS,
        sources=OF_SOURCE,
        accepts=accepts,
        layout=Layout(path=names.readable_path, places_vary=True),  # by the spelling of a version in the name of a file
        resource=lambda repository, services: PythonSite(services, repository, caches).app.resource(),
        root_exchanges=ROOT_EXCHANGES,
        mirrored=MIRRORED,
        imported=IMPORTED,
        token_clients=("pip",),
        setup=snippets,
        install=install_snippets,
        client_documents=ClientDocuments(
            repository=_pages("simple/"), package=lambda key, _name: _pages(f"simple/{key}/")
        ),
        uploads=Uploads(
            what="wheels and source distributions",
            names={".whl": "[^-]+-[^-]+(-[0-9][^-]*)?-[^-]+-[^-]+-[^-]+", ".tar.gz": ".+-.+", ".zip": ".+-.+"},
            take=take_file,
            caches=caches,
        ),
        proxied=Proxied(
            document_request=page_question,
            make_release=make_release,
            kinds=KINDS.__getitem__,
            read_parts=read_parts,
            splice=splice,
            rewind=rewind,
            latest_form=JSON_PAGE,
            latest=_latest,
            containers=Containers(container_of=container_of, read_out=read_out, without=without_metadata),
            own_facts=OwnFacts(data=frozenset({"licences"}), read=read_own, described_by=described_by, main_of=main_of),
            drilled=DRILLED,
            lists_held=frozenset({HELD_PAGE}),
        ),
        restore_documents=restored_document_of(page_question, restore_page),
        address=AddressShape(endings=INDEXES, below=("/project/",)),
        probes=index_probes,
        dated=True,
        caches={
            **caches.pages.caches("pages"),
            "groups of lists of projects": PROJECT_LISTS.renderer.cache,
            "groups of lists of names": NAME_LISTS.renderer.cache,
        },
    )


def _latest(key: str, members: Sequence[MemberParts]) -> Latest | None:
    found = newest(read_listed(merge_fragments(members, JSON_PAGE), key, "").values())
    return None if found is None else Latest(found.version, LatestReason.HIGHEST)


def _pages(folder: str) -> Sequence[ClientDocument]:
    """The two forms of a page of the simple index."""
    return (
        ClientDocument(
            path=f"{folder}index.html",
            address=folder,
            accept="text/html",
            folder=folder,
            named=lambda path, _sha256: path.rpartition("/")[2].removesuffix(METADATA),
        ),
        ClientDocument(path=f"{folder}index.json", address=folder, accept="application/vnd.pypi.simple.v1+json"),
    )
