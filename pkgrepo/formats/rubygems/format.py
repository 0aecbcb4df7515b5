"""The Ruby gem format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.formats.rubygems import paths
from pkgrepo.formats.rubygems.index.indexing import KINDS, compact_versions, latest, read_parts, splice
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.proxied.merged_lists import Caches
from pkgrepo.formats.rubygems.proxied.upstream import (
    gem_server_probes,
    info_question,
    make_release,
    restore_info,
    restore_lists,
)
from pkgrepo.gateway.answers.spliced_documents import CachedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import (
    ICachingFormat,
    ICompactedFormat,
    IFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableFormat,
    IRestorableListsFormat,
    ISplicedFormat,
    Reader,
    Transaction,
)
from pkgrepo.model import BlobInfo, Package, Repository
from pkgrepo.proxy.documents.held import DocumentRequest, restored_document
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Latest, MemberParts
from pkgrepo.proxy.virtual import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.pools import Pools

from .configuration import CONFIGURATIONS
from .indexer import apply_change
from .names import check_full_version, check_name
from .routes import RubySite
from .setup import install_snippets, snippets


@implementer(
    IFormat,
    ICachingFormat,
    ICompactedFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableFormat,
    IRestorableListsFormat,
    ISplicedFormat,
)
class RubyFormat(FormatBase):
    """The server that gem and Bundler talk to."""

    name = "ruby"
    aliases = ("rubygems", "gem")
    configurations = CONFIGURATIONS

    def __init__(self) -> None:
        self._caches = Caches()

    def caches(self) -> Mapping[str, ResponseCache[CachedDocuments]]:
        """See L{ICachingFormat.caches}."""
        return {"gems": self._caches.info.kept}

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return RubySite(services, repository, self._caches).resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        apply_change(index, change)

    def kinds(self, form: str) -> Sequence[str]:
        """See L{IIndexedFormat.kinds}."""
        return KINDS[form]

    def read_parts(self, reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
        """See L{IIndexedFormat.read_parts}."""
        return read_parts(reader, repository_id, key, form)

    def splice(self, key: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
        """See L{ISplicedFormat.splice}."""
        return splice(key, form, serial, members)

    latest_form = INFO

    def latest(self, _key: str, members: Sequence[MemberParts]) -> Latest | None:
        """See L{IIndexedFormat.latest}."""
        return latest(members)

    def document_request(self, key: str) -> DocumentRequest:
        """See L{IProxiedFormat.document_request}."""
        return info_question(key)

    async def make_release(
        self, file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools
    ) -> tuple[Release, Indexer]:
        """See L{IProxiedFormat.make_release}."""
        return await make_release(file, staged, blob, pools), apply_change

    def restore_documents(self, reader: Reader, package: Package) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableFormat.restore_documents}."""
        found = restore_info(reader, package)
        return () if found is None else (restored_document(info_question(package.key), *found),)

    def restore_lists(self, reader: Reader, repository: Repository) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableListsFormat.restore_lists}."""
        return [restored_document(*each) for each in restore_lists(reader, repository.id)]

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """See L{IProbedFormat.probes}."""
        return gem_server_probes(url)

    def compact(self, tx: Transaction, repository: Repository, now_ms: int) -> None:
        """See L{ICompactedFormat.compact}."""
        compact_versions(tx, repository, now_ms)

    def package_key(self, name: str) -> str:
        """The name itself, which is its own key. See L{IFormat.package_key}."""
        return check_name(name)

    def version_key(self, text: str) -> str:
        """The full version itself. See L{IFormat.version_key}."""
        return check_full_version(text)

    def readable_path(self, path: str) -> str:
        """See L{IFormat.readable_path}."""
        return paths.readable_path(path)

    def readable_folder(self, package_key: str) -> str:
        """See L{IFormat.readable_folder}."""
        return paths.readable_folder(package_key)

    def readable_places(self, package_key: str, version: str) -> Sequence[str]:
        """See L{IFormat.readable_places}."""
        return paths.readable_places(package_key, version)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(f"{base_url}/repositories/{repository.path}", name, version)
