"""The npm format's implementation of ``IFormat``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import paths
from pkgrepo.formats.npm.audit.export import AdvisoriesUnreadable, AdvisoryCache
from pkgrepo.formats.npm.audit.matching import advisories_of_version
from pkgrepo.formats.npm.packument.document import SHORT
from pkgrepo.formats.npm.packument.splicing import KINDS, find_latest, make_packuments, read_parts, splice
from pkgrepo.formats.npm.proxied.upstream import make_release, packument_question, restore_packument
from pkgrepo.gateway.answers.spliced_documents import CachedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import (
    IAdvisedFormat,
    ICachingFormat,
    IFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableFormat,
    ISplicedFormat,
    Reader,
)
from pkgrepo.model import BlobInfo, Package, Repository, VersionAdvisory
from pkgrepo.proxy.documents.held import DocumentRequest, restored_document
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Latest, MemberParts
from pkgrepo.proxy.virtual import publishes
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.pools import Pools
from pkgrepo.untrusted.text import quoted

from . import names
from .configuration import CONFIGURATIONS
from .indexing import index_package
from .routes import NpmSite
from .semver import parse_version
from .setup import install_snippets, snippets

LOGINS = (b"-/user/org.couchdb.user:", b"-/user/token/", b"-/v1/login", b"-/v1/done")


@implementer(IFormat, IAdvisedFormat, ICachingFormat, IProbedFormat, IProxiedFormat, IRestorableFormat, ISplicedFormat)
class NpmFormat(FormatBase):
    """The registry that npm, pnpm, yarn and bun talk to."""

    name = "npm"
    aliases = ("node",)
    configurations = CONFIGURATIONS

    def __init__(self, advisories: Path | None = None) -> None:
        """``advisories`` is the path of an OSV export: a folder or a zip of records. With None audits find nothing."""
        self._packuments = make_packuments()
        self._advisories = AdvisoryCache(advisories)

    def caches(self) -> Mapping[str, ResponseCache[CachedDocuments]]:
        """See L{ICachingFormat.caches}."""
        return {"packuments": self._packuments.kept}

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return NpmSite(services, repository, self._packuments, self._advisories).resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        index_package(index, change)

    def kinds(self, form: str) -> Sequence[str]:
        """See L{IIndexedFormat.kinds}."""
        return KINDS[form]

    def read_parts(self, reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
        """See L{IIndexedFormat.read_parts}."""
        return read_parts(reader, repository_id, key, form)

    def splice(self, key: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
        """See L{ISplicedFormat.splice}."""
        return splice(key, form, serial, members)

    latest_form = SHORT

    def latest(self, key: str, members: Sequence[MemberParts]) -> Latest | None:  # noqa: ARG002 - of the interface
        """See L{IIndexedFormat.latest}."""
        return find_latest(members)

    def document_request(self, key: str) -> DocumentRequest:
        """See L{IProxiedFormat.document_request}."""
        return packument_question(key)

    async def make_release(
        self,
        file: RemoteFile,
        staged: Staged,  # noqa: ARG002 - the tarball is not read
        blob: BlobInfo,
        pools: Pools,  # noqa: ARG002
    ) -> tuple[Release, Indexer]:
        """See L{IProxiedFormat.make_release}."""
        return make_release(file.key, file.entry, file.source, blob), index_package

    def restore_documents(self, reader: Reader, package: Package) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableFormat.restore_documents}."""
        found = restore_packument(reader, package)
        return () if found is None else (restored_document(packument_question(package.key), *found),)

    async def find_advisories(
        self, package_key: str, version: str, pools: Pools, clock: Clock
    ) -> Sequence[VersionAdvisory] | None:
        """See L{IAdvisedFormat.find_advisories}."""
        if not self._advisories.has_export:
            return None
        try:
            index = await self._advisories.index(pools, clock)
        except AdvisoriesUnreadable:
            return None
        # An advisory may list thousands of versions, which are parsed and sorted for the range that is shown.
        found: list[VersionAdvisory] = await pools.cpu(advisories_of_version, index, package_key, version)
        return found

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """See L{IProbedFormat.probes}. Mirrors of files have no ping."""
        return ((f"{url}/-/ping", (200,)), (f"{url}/", (200,)))

    def package_key(self, name: str) -> str:
        """The name itself, which is its own key. See L{IFormat.package_key}."""
        if not names.is_readable(name):
            raise Invalid(f"{quoted(name)} is not the name of a package", "name")
        return name

    def version_key(self, text: str) -> str:
        """The text without the prefixes that npm strips. See L{IFormat.version_key}."""
        return parse_version(text).text

    def readable_path(self, path: str) -> str:
        """See L{IFormat.readable_path}."""
        return paths.readable_path(path)

    def needs_no_credentials(self, path: bytes) -> bool:
        """Whether a path is one of login or logout. See L{IFormat.needs_no_credentials}."""
        return path.startswith(LOGINS)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(f"{base_url}/repositories/{repository.path}", name, version)
