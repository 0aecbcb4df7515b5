"""The Python format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.archives.source import Source
from pkgrepo.formats.python import names
from pkgrepo.formats.python.index.indexing import KINDS, index_project, make_index, read_parts, splice
from pkgrepo.formats.python.index.pages import JSON_PAGE
from pkgrepo.formats.python.index.project_json import newest, read_listed
from pkgrepo.formats.python.index.project_lists import PROJECT_LISTS, MergedLists
from pkgrepo.formats.python.index.requests import IndexCaches
from pkgrepo.formats.python.proxied.upstream import (
    container_of,
    index_probes,
    list_question,
    make_release,
    page_question,
    read_out,
    restore_page,
)
from pkgrepo.gateway.answers.spliced_documents import CachedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import (
    ICachingFormat,
    IContainingFormat,
    IFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableFormat,
    ISplicedFormat,
    Reader,
)
from pkgrepo.model import BlobInfo, Package, Repository
from pkgrepo.proxy.documents.held import DocumentRequest, restored_document
from pkgrepo.proxy.parts.values import FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Latest, LatestReason, MemberParts, merge_fragments
from pkgrepo.proxy.virtual import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_lists import PackageLists
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.pools import Pools

from .configuration import CONFIGURATIONS
from .names import normalise, parse_version
from .routes import PythonSite
from .setup import install_snippets, snippets


@implementer(
    IFormat, ICachingFormat, IContainingFormat, IProbedFormat, IProxiedFormat, IRestorableFormat, ISplicedFormat
)
class PythonFormat(FormatBase):
    """Simple index, uploads and JSON metadata (PEP 503, 592, 629, 658, 691, 700, 714, 740, 792)."""

    name = "python"
    aliases = ("pypi", "pip")
    configurations = CONFIGURATIONS

    def __init__(self) -> None:
        self._caches = IndexCaches(make_index(), PackageLists(PROJECT_LISTS), MergedLists(list_question()))

    def caches(self) -> Mapping[str, ResponseCache[CachedDocuments]]:
        """See L{ICachingFormat.caches}."""
        return {"pages": self._caches.pages.kept}

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return PythonSite(services, repository, self._caches).resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        index_project(index, change)

    def kinds(self, form: str) -> Sequence[str]:
        """See L{IIndexedFormat.kinds}."""
        return KINDS[form]

    def read_parts(self, reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
        """See L{IIndexedFormat.read_parts}."""
        return read_parts(reader, repository_id, key, form)

    def splice(self, key: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
        """See L{ISplicedFormat.splice}."""
        return splice(key, form, serial, members)

    latest_form = JSON_PAGE

    def latest(self, key: str, members: Sequence[MemberParts]) -> Latest | None:
        """See L{IIndexedFormat.latest}."""
        found = newest(read_listed(merge_fragments(members, JSON_PAGE), key, "").values())
        return None if found is None else Latest(found.version, LatestReason.HIGHEST)

    def document_request(self, key: str) -> DocumentRequest:
        """See L{IProxiedFormat.document_request}."""
        return page_question(key)

    async def make_release(
        self, file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools
    ) -> tuple[Release, Indexer]:
        """See L{IProxiedFormat.make_release}."""
        return await make_release(file, staged, blob, pools), index_project

    def container_of(self, file: RemoteFile) -> FileSource | None:
        """See L{IContainingFormat.container_of}."""
        return container_of(file)

    def read_out(self, container: Source, file: RemoteFile) -> bytes:
        """See L{IContainingFormat.read_out}."""
        return read_out(container, file)

    def restore_documents(self, reader: Reader, package: Package) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableFormat.restore_documents}."""
        found = restore_page(reader, package)
        return () if found is None else (restored_document(page_question(package.key), *found),)

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """See L{IProbedFormat.probes}."""
        return index_probes(url)

    def package_key(self, name: str) -> str:
        """See L{IFormat.package_key}."""
        return normalise(name)

    def version_key(self, text: str) -> str:
        """See L{IFormat.version_key}."""
        return parse_version(text)[0]

    def readable_path(self, path: str) -> str:
        """See L{IFormat.readable_path}."""
        return names.readable_path(path)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(f"{base_url}/repositories/{repository.path}", name, version)
