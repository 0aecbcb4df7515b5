"""The conda format, as the composition root and the management API see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.application.service import IService
from twisted.web.resource import IResource
from zope.interface import implementer

from pkgrepo.formats.conda import paths
from pkgrepo.formats.conda.anaconda.uploads import BRANCH, PostSite
from pkgrepo.formats.conda.index.documents import IndexCaches
from pkgrepo.formats.conda.index.packages import VERSIONS, index_package, latest, read_parts
from pkgrepo.formats.conda.proxied.channels import MemberChannels
from pkgrepo.formats.conda.proxied.restoring import (
    channel_probes,
    explain_package,
    make_release,
    package_question,
    restore_documents,
)
from pkgrepo.formats.conda.wheels.following import WheelFollower
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.interfaces import (
    IBackgroundFormat,
    ICompanionFormat,
    IExplainingFormat,
    IFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableListsFormat,
    IRootFormat,
    Reader,
)
from pkgrepo.model import BlobInfo, Package, Repository
from pkgrepo.proxy.documents.held import DocumentRequest, restored_document
from pkgrepo.proxy.explaining import Explanation
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Latest, MemberParts
from pkgrepo.proxy.virtual import publishes
from pkgrepo.repositories.format_base import FormatBase
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.pools import Pools

from .configuration import CONFIGURATIONS, companion_config
from .names import check_name, version_key
from .routes import CondaSite
from .setup import install_snippets, snippets


@implementer(
    IFormat,
    ICompanionFormat,
    IBackgroundFormat,
    IExplainingFormat,
    IProbedFormat,
    IProxiedFormat,
    IRestorableListsFormat,
    IRootFormat,
)
class CondaFormat(FormatBase):
    """A channel that conda, mamba and pixi install from."""

    name = "conda"
    aliases = ()
    configurations = CONFIGURATIONS
    readable_places_vary = True
    companion_of = ("python",)
    segment = "conda"

    def __init__(self) -> None:
        self._caches = IndexCaches()
        self._channels = MemberChannels()

    def resource(self, repository: Repository, services: Services) -> IResource:
        """See L{IFormat.resource}."""
        return CondaSite(services, repository, self._caches, self._channels).resource()

    def branches(self, services: Services, _token_service: IResource) -> Mapping[str, IResource]:
        """Where anaconda-client sends files. See L{IRootFormat.branches}."""
        return {BRANCH: PostSite(services).resource()}

    def ping_answers(self) -> Mapping[bytes, Answer]:
        """None. See L{IRootFormat.ping_answers}."""
        return {}

    def companion_config(self, parent: Repository, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
        """See L{ICompanionFormat.companion_config}."""
        return companion_config(parent, companion)

    def background_services(self, services: Services, reactor: Any) -> Sequence[IService]:
        """The conversion of wheels. See L{IBackgroundFormat.background_services}."""
        return [WheelFollower(services, self.name).service(reactor)]

    def index(self, index: PackageIndex, change: Change) -> None:
        """See L{IFormat.index}."""
        index_package(index, change)

    def package_of(self, key: str) -> str:
        """The package, without the folder that the document is about. See L{IIndexedFormat.package_of}."""
        return key.rpartition("/")[2]

    def document_of(self, package_key: str, path: str) -> str:
        """Folder and package. See L{IIndexedFormat.document_of}."""
        return f"{path.partition('/')[0]}/{package_key}"

    def kinds(self, _form: str) -> Sequence[str]:
        """None: clients ask for documents of folders. See L{IIndexedFormat.kinds}."""
        return ()

    def read_parts(self, reader: Reader, repository_id: int, key: str, _form: str) -> tuple[MemberParts, Package]:
        """See L{IIndexedFormat.read_parts}."""
        return read_parts(reader, repository_id, self.package_of(key))

    latest_form = VERSIONS

    def latest(self, _key: str, members: Sequence[MemberParts]) -> Latest | None:
        """See L{IIndexedFormat.latest}."""
        return latest(members)

    def document_request(self, key: str) -> DocumentRequest:
        """See L{IProxiedFormat.document_request}."""
        return package_question(key)

    async def make_release(
        self, file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools
    ) -> tuple[Release, Indexer]:
        """See L{IProxiedFormat.make_release}."""
        return await make_release(file, staged, blob, pools), index_package

    def restore_lists(self, reader: Reader, repository: Repository) -> Sequence[tuple[UpstreamDocument, bytes]]:
        """See L{IRestorableListsFormat.restore_lists}."""
        return [restored_document(*each) for each in restore_documents(reader, repository.id)]

    def probes(self, url: str) -> Sequence[tuple[str, Sequence[int]]]:
        """See L{IProbedFormat.probes}."""
        return channel_probes(url)

    async def explain(
        self, services: Services, repository: Repository, package_key: str, version: str | None, *, revalidate: bool
    ) -> Explanation:
        """See L{IExplainingFormat.explain}."""
        return await explain_package(self, services, repository, package_key, version, revalidate=revalidate)

    def package_key(self, name: str) -> str:
        """The name itself, which is its own key. See L{IFormat.package_key}."""
        return check_name(name)

    def version_key(self, text: str) -> str:
        """The version in lower case. See L{IFormat.version_key}."""
        return version_key(text)

    def readable_folder(self, package_key: str) -> str:
        """See L{IFormat.readable_folder}."""
        return paths.readable_folder(package_key)

    def setup(self, base_url: str, repository: Repository) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.setup}."""
        return snippets(f"{base_url}/repositories/{repository.path}", publishes=publishes(repository))

    def install(self, base_url: str, repository: Repository, name: str, version: str) -> Sequence[Mapping[str, str]]:
        """See L{IFormat.install}."""
        return install_snippets(f"{base_url}/repositories/{repository.path}", name, version)
