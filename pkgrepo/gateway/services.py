"""What the handlers of formats work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar, cast

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.auth.accounts import Accounts
from pkgrepo.concurrency.pools import Pools
from pkgrepo.gateway.callers.access import Access, actor_of
from pkgrepo.gateway.responses.cache import ResponseCache
from pkgrepo.gateway.responses.content import Files
from pkgrepo.gateway.responses.view_turns import ViewTurns
from pkgrepo.http.request import Request
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Extent, Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.oidc.pipelines import PipelineTokens
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.revalidation import Revalidation
from pkgrepo.proxy.caching.states import NegativeCache
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.proxy.resolving.rules import PolicyJudges
from pkgrepo.proxy.rule_matches import RuleMatches
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.repositories.advisories.known import KnownAdvisories
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.descriptions import Descriptions
from pkgrepo.repositories.downloads import CacheCounters, DownloadRecorder
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.search import SearchIndexCache
from pkgrepo.sigstore.roots import TrustedRoot

from .image_addresses import ImageAddresses

C_co = TypeVar("C_co", covariant=True)


@frozen
class Proxying:
    """What serves the packages of upstreams."""

    upstreams: Upstreams
    documents: Documents
    resolver: Resolver
    transfers: Transfers
    negative_cache: NegativeCache
    revalidation: Revalidation
    counters: CacheCounters
    fetching: Fetching
    package_files: PackageFiles
    judges: PolicyJudges
    matches: RuleMatches
    trusted_root: TrustedRoot  # by which attestations are verified
    settle: Callable[[], Awaitable[None]]  # have what proxies have served stored, before something of it is removed


@frozen
class Services:
    """The shared mechanisms, as the composition root put them together."""

    catalog: ICatalog
    registry: Registry
    content: ContentWriter
    pools: Pools
    clock: Clock
    access: Access
    files: Files
    response_cache: ResponseCache
    downloads: DownloadRecorder
    searches: SearchIndexCache
    descriptions: Descriptions
    accounts: Accounts
    images: ImageAddresses
    proxy: Proxying
    formats: Mapping[str, StoredFormat] = field(eq=False)
    pipelines: PipelineTokens
    advisories: KnownAdvisories
    max_upload: int
    public_url: str = ""
    view_turns: ViewTurns = field(init=False, eq=False)

    @view_turns.default
    def _make_turns(self) -> ViewTurns:
        return ViewTurns(cast("IReactorTime", self.pools.reactor))

    def base_url(self, request: Request) -> str:
        """
        The address under which clients know this server, without a slash at the end.

        A host that stands for a repository stays what the client used, with the scheme of ``public_url``, if that is
        set: a proxy that ends TLS need not be a trusted one.
        """
        url: str = request.base_url
        if not self.public_url:
            return url
        addresses = self.registry.addresses
        if addresses.hosts and addresses.of_host(request.asked_host) is not None:
            return f"{self.public_url.partition('://')[0]}://{url.partition('://')[2]}"
        return self.public_url

    def repository_url(self, request: Request, repository: Repository) -> str:
        """
        The address under which clients know a repository, without a slash at the end.

        It is the one that the client used, if its host or an alias stands for the repository, or for a virtual one
        through which this one is published to.
        """
        entry = request.entry
        if entry is None or entry.base is None or repository.stage is not None:
            return f"{self.base_url(request)}/repositories/{repository.address}"
        url = f"{self.base_url(request)}{entry.base}"
        return url if repository.parent is None else f"{url}/{repository.name.rpartition('/')[2]}"


@frozen
class Context(Generic[C_co]):
    """What a handler of a format works with; ``caches`` are those of its format."""

    services: Services
    repository: Repository
    caches: C_co

    async def admit(self, request: Request, action: Action, package: str | Extent | None = None) -> Identity:
        """The identity of a caller who may do this in the repository, see L{Access.admit}."""
        return await self.services.access.admit(request, action, self.repository, package)

    async def admit_publishing(
        self, request: Request, package: str, action: Action = Action.WRITE
    ) -> tuple[Identity, Admitted]:
        """A caller who may make something of a package visible, and the proof of it, see L{Access.publishing}."""
        access = self.services.access
        request.repository = self.repository.path
        identity = await access.identify(request)
        actor = actor_of(request, identity)
        return identity, await access.publishing(identity, self.repository, package, actor, action=action)

    def url(self, request: Request) -> str:
        """The address under which clients know the repository, without a slash at the end."""
        return self.services.repository_url(request, self.repository)
