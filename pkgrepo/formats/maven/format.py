"""The Maven format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.application.service import IService
from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.formats.maven.deploy.running import Running, StopWithServer
from pkgrepo.formats.maven.deploy.work import ResumeDeployments
from pkgrepo.formats.maven.listing.entries import ListingTurns
from pkgrepo.formats.maven.metadata.document import UPLOADED
from pkgrepo.formats.maven.metadata.joining import (
    ARTIFACT,
    KINDS,
    index_artifact,
    latest,
    make_documents,
    read_parts,
    render_directory,
    splice,
    split_key,
)
from pkgrepo.formats.maven.proxied.questions import (
    file_question,
    metadata_question,
    probes,
    release_of,
    restore_metadata,
)
from pkgrepo.formats.maven.search.requests import SearchSite
from pkgrepo.gateway.answers.spliced_documents import CachedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import (
    IAddressedFormat,
    IBackgroundFormat,
    ICachingFormat,
    IFormat,
    IPathFormat,
    IProbedFormat,
    IRestorableFormat,
    IRootFormat,
    ISplicedFormat,
    IWorkingFormat,
    Reader,
)
from pkgrepo.model import BlobInfo, Package, Repository
from pkgrepo.proxy.addressed.request import FileRequest
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
from .names import package_directory, parse_package_key, parse_version
from .paths import METADATA_NAMES
from .routes import MavenSite
from .setup import install_snippets, snippets


@implementer(
    IFormat,
    IAddressedFormat,
    IBackgroundFormat,
    ICachingFormat,
    IPathFormat,
    IProbedFormat,
    IRestorableFormat,
    IRootFormat,
    ISplicedFormat,
    IWorkingFormat,
)
class MavenFormat(FormatBase):
    """Artifacts for Maven, Gradle, Ivy and sbt, in the Maven 2 repository layout."""

    name = "maven"
    aliases = ("java",)
    configurations = CONFIGURATIONS
    document_names = METADATA_NAMES
    kept_kinds = (UPLOADED,)

    def __init__(self) -> None:
        self._documents = make_documents()
        self._running = Running()
        self._listing_turns = ListingTurns()

    def caches(self) -> Mapping[str, ResponseCache[CachedDocuments]]:
        """See L{ICachingFormat.caches}."""
        return {"maven metadata": self._documents.kept}

    def background_services(self, services: Services, reactor: Any) -> Sequence[IService]:
        """Going on with deployments of processes that ended. See L{IBackgroundFormat.background_services}."""
        return [ResumeDeployments(services, self.name, self.index, self._running, reactor)]

    def process_services(self) -> Sequence[IService]:
        """The work on deployments. See L{IWorkingFormat.process_services}."""
        return [StopWithServer(self._running)]

    def branches(self, services: Services, _token_service: IResource) -> Mapping[str, IResource]:
        """Search, and questions as other repository servers are asked them. See L{IRootFormat.branches}."""
        return dict.fromkeys(("solrsearch", "api/maven", "api/badge"), SearchSite(services).resource())

    def ping_answers(self) -> Mapping[bytes, Answer]:
        """None. See L{IRootFormat.ping_answers}."""
        return {}

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        site = MavenSite(services, repository, self.index, self._running, self._documents, self._listing_turns)
        return site.resource()

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        index_artifact(index, change)

    def package_of(self, key: str) -> str:
        """The artifact, without the version of a snapshot. See L{IIndexedFormat.package_of}."""
        return split_key(key)[0]

    def kinds(self, form: str) -> Sequence[str]:
        """See L{IIndexedFormat.kinds}."""
        return KINDS[form]

    def read_parts(self, reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
        """See L{IIndexedFormat.read_parts}."""
        return read_parts(reader, repository_id, key, form)

    def splice(self, key: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
        """See L{ISplicedFormat.splice}."""
        return splice(key, form, serial, members)

    latest_form = ARTIFACT

    def latest(self, key: str, members: Sequence[MemberParts]) -> Latest | None:
        """See L{IIndexedFormat.latest}."""
        return latest(key, members)

    def document_request(self, key: str) -> DocumentRequest:
        """See L{IProxiedFormat.document_request}."""
        return metadata_question(key)

    def file_request(self, key: str, path: str) -> FileRequest:
        """See L{IAddressedFormat.file_request}."""
        return file_question(key, path)

    async def make_release(
        self, file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools
    ) -> tuple[Release, Indexer]:
        """See L{IProxiedFormat.make_release}."""
        return await release_of(file, staged, blob, pools), self.index

    def restore_documents(self, reader: Reader, package: Package) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableFormat.restore_documents}."""
        return [restored_document(*each) for each in restore_metadata(reader, package)]

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """See L{IProbedFormat.probes}."""
        return probes(url)

    def package_key(self, name: str) -> str:
        """See L{IFormat.package_key}."""
        return parse_package_key(name)

    def version_key(self, text: str) -> str:
        """See L{IFormat.version_key}."""
        return parse_version(text)

    def directory(self, package_key: str, version: str) -> str:
        """See L{IPathFormat.directory}."""
        top = package_directory(package_key)
        return f"{top}/{version}" if version else top

    def directory_document(self, reader: Reader, repository_id: int, directory: str) -> bytes | None:
        """See L{IPathFormat.directory_document}."""
        return render_directory(reader, repository_id, directory)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, _base_url: str, _repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(name, version)
