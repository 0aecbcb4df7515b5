"""What serves the packages of upstreams: the clients, what is kept of their answers, and the resolver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.request import getproxies_environment

from twisted.application.service import IService

from pkgrepo.composition.processes.shared_news import (
    DOCUMENTS,
    FILES,
    SETTLE,
    WAITING,
    DecisionNews,
    TransferNotices,
    answer_after,
    make_chosen_routes,
    make_mistrusted,
    make_negative_cache,
    receive_purges,
    receive_waiting,
)
from pkgrepo.concurrency.services import spawn
from pkgrepo.config import Config
from pkgrepo.config.sections.repositories import Proxy
from pkgrepo.gateway.responses.content import Files
from pkgrepo.gateway.services import Proxying
from pkgrepo.model import ReadLimits, Repository
from pkgrepo.process.workers.peers import NoPeers
from pkgrepo.proxy.addressed.chosen_routes import Decisions
from pkgrepo.proxy.addressed.files import AddressedFiles
from pkgrepo.proxy.addressed.mutable import MutableFiles
from pkgrepo.proxy.addressed.request import Announcers
from pkgrepo.proxy.addressed.walk import Context as AddressedContext
from pkgrepo.proxy.caching.asking import Asker
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.kept import KeptResponses
from pkgrepo.proxy.caching.revalidation import Revalidation
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.leases import Leases, Turns
from pkgrepo.proxy.parts.normalising import Normaliser
from pkgrepo.proxy.parts.supervisor import Supervisor
from pkgrepo.proxy.purge import CacheLimits, CachePurge
from pkgrepo.proxy.remote_files import Keeper, RemoteFile
from pkgrepo.proxy.resolving.addressed_files import AddressedMembers
from pkgrepo.proxy.resolving.attested_files import AttestedFiles
from pkgrepo.proxy.resolving.dependency_ages import DependencyAges
from pkgrepo.proxy.resolving.fact_reading import FactReading
from pkgrepo.proxy.resolving.histories import Histories
from pkgrepo.proxy.resolving.lines import Lines
from pkgrepo.proxy.resolving.own_facts import OwnFactsOfFiles
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.proxy.resolving.read_ahead import ReadAhead
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.proxy.resolving.rules import FileRules, PolicyJudges
from pkgrepo.proxy.resolving.source_archives import SourceArchives
from pkgrepo.proxy.rule_matches import RuleMatches
from pkgrepo.proxy.transfers.receiving import Context
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.transfers.sharing import Sharing
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import UpstreamSettings
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.repositories.format import ByFormat
from pkgrepo.repositories.policy.archive_addresses import ArchiveAddresses
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.storage.catalog.server.upstream_states import is_down, note_upstream

from .core import Core

FETCHES = "fetches"  # name of the lock file in the folder of the database


def _make_keeper(core: Core) -> Keeper:
    return Keeper(
        catalog=core.catalog,
        content=core.content,
        pools=core.pools,
        clock=core.clock,
        makers=ByFormat(core.formats, lambda each: None if each.proxied is None else each.proxied.make_release),
        indexers=ByFormat(core.formats, lambda each: each.index),
    )


class ProxyParts:
    """The parts of proxies, put together over a core that was started."""

    def __init__(self, core: Core, config: Config, reactor: Any) -> None:
        formats = ByFormat(core.formats, lambda each: each.proxied)
        self._peers = peers = core.peers
        self._leases = Leases(core.lease_folder / FETCHES, core.nodes)
        sharing = self._make_sharing(core, reactor)
        self.counters = CacheCounters(catalog=core.catalog, clock=core.clock, reactor=reactor)
        settings = upstream_settings(config.proxy, getproxies_environment())
        self.upstreams = Upstreams(
            settings,
            reactor,
            authorize=lambda route: authorization_of(route, core.secrets),
            on_traffic=self.counters.add_traffic,
            on_health=partial(announce_health, core),
        )
        self._archives = Upstreams(settings, reactor, authorize=lambda _route: None)
        self._supervisor = Supervisor(reactor)
        self.negative_cache = make_negative_cache(peers, core.clock)
        self._kept = kept = self._make_kept(core)
        self.revalidation = Revalidation(clock=core.clock, negative_cache=self.negative_cache, counters=self.counters)
        self.documents = self._make_documents(core, sharing, reactor)
        self._content = core.content
        self.transfers = Transfers(Context(reactor=reactor, without_delay=core.content.without_delay, sharing=sharing))
        decisions = None if sharing is None else Decisions(self._leases, DecisionNews(peers), reactor)
        self._chosen_routes = make_chosen_routes(peers, core.catalog, decisions)
        self._mistrusted = make_mistrusted(peers)
        keeper = _make_keeper(core)
        self.fetching = self._make_fetching(core, config, keeper, formats)
        context = self._make_context(core, config)
        addressed = AddressedFiles(context, keeper, self._mistrusted)
        self._root = core.trusted_root
        own = self._make_own_facts(core, config, addressed, formats)
        self._lines = Lines(catalog=core.catalog, documents=self.documents, formats=formats)
        self.judges = self._make_judges(core, config, formats)
        self.rule_matches = RuleMatches(catalog=core.catalog, clock=core.clock, reactor=reactor)
        ahead = ReadAhead(
            catalog=core.catalog,
            own=own,
            judges=self.judges,
            documents=self.documents,
            clock=core.clock,
            formats=core.formats,
            proxied=formats,
            versions=config.proxy.facts_ahead,
            reactor=reactor,
        )
        self.resolver = self._make_resolver(core, ahead, formats)
        self.package_files = self._make_files(core, context, addressed, own, formats)
        self.purge = CachePurge(core.context, content=core.content, kept=kept, forget=self.package_files.forget)
        receive_purges(peers, core.registry, kept, self.package_files)
        answer_after(peers, SETTLE, self._settle_own)
        self._limits = CacheLimits(core.context, purge=self.purge, kept=kept, reactor=reactor)

    def _make_sharing(self, core: Core, reactor: Any) -> Sharing | None:
        """What lets processes share a fetch; None where there is one process."""
        if isinstance(self._peers, NoPeers):
            return None
        notices = TransferNotices(self._peers, core.workers)
        sharing = Sharing(self._leases, notices, reactor)
        notices.subscribe(sharing)
        return sharing

    def _make_kept(self, core: Core) -> KeptResponses:
        return KeptResponses(
            absences=self.negative_cache,
            catalog=core.catalog,
            registry=core.registry,
            stores=core.stores,
            content=core.content,
            pools=core.pools,
            delay=core.batch_delay,
            on_forget=lambda repository, keys: DOCUMENTS.publish(self._peers, (repository.id, list(keys))),
        )

    def _make_documents(self, core: Core, sharing: Sharing | None, reactor: Any) -> Documents:
        turns = None
        if sharing is not None:
            turns = Turns(
                self._leases,
                tell=lambda lease: WAITING.publish(self._peers, lease),
                without_delay=self._kept.without_delay,
                reactor=reactor,
            )
            receive_waiting(self._peers, turns)
        asker = Asker(
            kept=self._kept,
            content=core.content,
            clock=core.clock,
            upstreams=self.upstreams,
            normaliser=Normaliser(core.pools, self._supervisor),
        )
        return Documents(
            turns=turns,
            kept=self._kept,
            asker=asker,
            upstreams=self.upstreams,
            clock=core.clock,
            revalidation=self.revalidation,
        )

    def _make_fetching(self, core: Core, config: Config, keeper: Keeper, formats: Mapping[str, Proxied]) -> Fetching:
        return Fetching(
            catalog=core.catalog,
            content=core.content,
            upstreams=self.upstreams,
            transfers=self.transfers,
            keeper=keeper,
            counters=self.counters,
            mistrusted=self._mistrusted,
            formats=formats,
            pools=core.pools,
            on_mismatch=self._doubt,
            on_lack=self._lack,
            largest=config.server.max_upload,
        )

    def _make_context(self, core: Core, config: Config) -> AddressedContext:
        return AddressedContext(
            catalog=core.catalog,
            content=core.content,
            clock=core.clock,
            upstreams=self.upstreams,
            transfers=self.transfers,
            chosen_routes=self._chosen_routes,
            announcers=Announcers(),
            negative_cache=self.negative_cache,
            counters=self.counters,
            limits=ReadLimits(config.server.max_upload),
        )

    def _make_own_facts(
        self, core: Core, config: Config, addressed: AddressedFiles, formats: Mapping[str, Proxied]
    ) -> OwnFactsOfFiles:
        """What reads facts out of files, with the signatures and source archives that belong to them."""
        inspect = Files(registry=core.registry, stores=core.stores, first_reads=core.first_reads).inspect
        attested = AttestedFiles(
            catalog=core.catalog,
            clock=core.clock,
            pool=core.pools.cpu,
            formats=core.formats,
            proxied=formats,
            fetching=self.fetching,
            documents=self.documents,
            inspect=inspect,
            root=self._root,
        )
        sources = SourceArchives(
            catalog=core.catalog,
            clock=core.clock,
            disk=core.pools.disk,
            inside=core.pools.inside,
            formats=core.formats,
            upstreams=self._archives,
            inspect=inspect,
            folder=config.data.dir,
        )
        reading = FactReading(
            catalog=core.catalog,
            clock=core.clock,
            pool=core.pools.cpu,
            inside=core.pools.inside,
            formats=core.formats,
            proxied=formats,
            fetching=self.fetching,
            addressed=addressed,
            inspect=inspect,
        )
        return OwnFactsOfFiles(
            catalog=core.catalog,
            pool=core.pools.cpu,
            proxied=formats,
            fetching=self.fetching,
            attested=attested,
            ages=DependencyAges(catalog=core.catalog, clock=core.clock, proxied=formats, documents=self.documents),
            sources=sources,
            reading=reading,
        )

    def _make_judges(self, core: Core, config: Config, formats: Mapping[str, Proxied]) -> PolicyJudges:
        histories = Histories(
            catalog=core.catalog, documents=self.documents, formats=core.formats, proxied=formats, root=self._root
        )
        return PolicyJudges(
            core.catalog,
            core.clock,
            core.formats,
            core.advisories,
            formats,
            histories,
            self._lines,
            ArchiveAddresses.checked(config.proxy.source_archives),
        )

    def _make_resolver(self, core: Core, ahead: ReadAhead, formats: Mapping[str, Proxied]) -> Resolver:
        return Resolver(
            catalog=core.catalog,
            registry=core.registry,
            documents=self.documents,
            pools=core.pools,
            clock=core.clock,
            formats=formats,
            orders=ByFormat(core.formats, order_of),
            judges=self.judges,
            companions={name: each.companion for name, each in core.formats.items() if each.companion is not None},
            ahead=ahead,
            on_held=self.rule_matches.hold,
        )

    def _make_files(
        self,
        core: Core,
        context: AddressedContext,
        files: AddressedFiles,
        own: OwnFactsOfFiles,
        formats: Mapping[str, Proxied],
    ) -> PackageFiles:
        rules = FileRules(core.catalog, self.judges, own, self._lines, self.rule_matches.add)
        addressed = AddressedMembers(
            catalog=core.catalog,
            resolver=self.resolver,
            rules=rules,
            files=files,
            mutable=MutableFiles(context, self.revalidation),
        )
        return PackageFiles(
            catalog=core.catalog,
            resolver=self.resolver,
            documents=self.documents,
            rules=rules,
            addressed=addressed,
            formats=formats,
            on_forget=lambda repository: FILES.publish(core.peers, repository.id),
        )

    async def _doubt(self, remote: RemoteFile) -> None:
        await self.package_files.doubt(remote)

    async def _lack(self, remote: RemoteFile) -> None:
        await self.package_files.lack(remote)

    def serving(self) -> Proxying:
        """What handlers of formats serve the packages of upstreams with."""
        return Proxying(
            upstreams=self.upstreams,
            documents=self.documents,
            resolver=self.resolver,
            transfers=self.transfers,
            negative_cache=self.negative_cache,
            revalidation=self.revalidation,
            counters=self.counters,
            judges=self.judges,
            matches=self.rule_matches,
            fetching=self.fetching,
            package_files=self.package_files,
            trusted_root=self._root,
            settle=self.settle,
        )

    def upkeep(self) -> IService:
        """The service that keeps caches within their limits."""
        return self._limits

    def mark_old(self, repository: Repository, keys: Sequence[str]) -> None:
        """Have documents (their keys) that were marked as old asked for again, and what no upstream had, everywhere."""
        self._kept.read_again(repository, keys)
        self.package_files.forget(repository)

    def check_settings(self) -> None:
        """Check the settings of upstream connections. :raises Invalid: one cannot be used"""
        self.upstreams.check_settings()

    async def settle(self) -> None:
        """Store at once what clients were given and may wait to be stored (``proxy.store_delay``), in all processes."""
        await self._settle_own()
        await self._peers.gather(SETTLE)

    async def _settle_own(self) -> None:
        with self._content.without_delay(), self._kept.without_delay():
            await self.transfers.settle()
            await self._kept.settle()

    async def stop(self) -> None:
        """End transfers, the connections to upstreams, and the worker processes."""
        with self._content.without_delay(), self._kept.without_delay():
            await self.transfers.stop()
        await self.upstreams.close()
        await self._archives.close()
        await self._supervisor.stop()
        self._chosen_routes.close()
        self._leases.close()


def announce_health(core: Core, repository_id: int, route: str, reason: str | None) -> None:
    """Append an event when an upstream is down (for a ``reason``), or answers again (None); once for all processes."""

    async def announce() -> None:
        if reason is not None or await core.catalog.look(is_down, repository_id, route):
            await core.catalog.write(note_upstream, repository_id, route, reason, core.clock.now_ms())

    spawn(announce(), "the state of upstream {route} could not be noted", route=route)


def upstream_settings(proxy: Proxy, proxies: Mapping[str, str]) -> UpstreamSettings:
    """The settings ``proxy.*``; ``proxies`` are those of the environment, by scheme, and exceptions under "no"."""
    return UpstreamSettings(
        connect_timeout_s=proxy.connect_timeout_s,
        idle_timeout_s=proxy.idle_timeout_s,
        documents=ReadLimits(proxy.max_document_size, proxy.document_timeout_s),
        max_connections_per_host=proxy.max_connections_per_host,
        allow_private=proxy.allow_private,
        ca_file=proxy.ca_file,
        proxies=proxies,
    )
