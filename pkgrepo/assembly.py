"""A whole server except for its ports, joined from its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import IService
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import IResource

from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S
from pkgrepo.composition.advisories import Mirror, make_refresh
from pkgrepo.composition.backups import make_runs
from pkgrepo.composition.core import Core
from pkgrepo.composition.events import make_events
from pkgrepo.composition.identification import make_identification
from pkgrepo.composition.listener import Listener
from pkgrepo.composition.processes.exclusive import WATCH_NODES_S, WATCH_S, CommitWatch, ExclusiveServices
from pkgrepo.composition.replication import make_replication
from pkgrepo.composition.tracing.setup import make_tracing
from pkgrepo.composition.twins import make_twins
from pkgrepo.composition.upstreams import ProxyParts
from pkgrepo.composition.used_formats import UsedFormats
from pkgrepo.concurrency.late import Late
from pkgrepo.concurrency.lru import SizedCache, share_memory
from pkgrepo.concurrency.services import MultiService, PeriodicTask, Work, wait_for_spawned
from pkgrepo.config import Config
from pkgrepo.gateway.cached_reads import CachedReads
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mounts import Mounts
from pkgrepo.gateway.responses.cache import ResponseCache
from pkgrepo.gateway.responses.content import Files
from pkgrepo.gateway.root_app import RootApp, RootResource
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.late import LateResource, late_branches
from pkgrepo.http.repeats import Repeats
from pkgrepo.http.site import Site
from pkgrepo.management import health
from pkgrepo.management.api.audit_log import COUNTS_S, FLUSH_S
from pkgrepo.management.api.services import Identification, ManagementServices
from pkgrepo.management.metrics.durations import ReactorLag
from pkgrepo.management.metrics.exposition import (
    DirectoryMetrics,
    ProcessMetrics,
    UpstreamMetrics,
    WebhookMetrics,
    answer_metrics,
)
from pkgrepo.management.metrics.server import ServerMetrics
from pkgrepo.mirroring.mirrors import Mirrors
from pkgrepo.mirroring.schedule import MirrorSchedule
from pkgrepo.process.resources import (
    CACHE_PART,
    PAGES_PART,
    RETURN_S,
    SMALL_PAGES,
    return_freed_memory,
    share_one_pool,
    usable_memory,
)
from pkgrepo.process.workers.master import METRICS
from pkgrepo.process.workers.peers import Peers
from pkgrepo.repositories.advisories.refresh import AdvisoryRefresh, RefreshSchedule
from pkgrepo.repositories.backup.runs import BackupRuns, BackupSchedule
from pkgrepo.repositories.clock import from_ms, seconds_of
from pkgrepo.repositories.retention.schedule import RetentionSchedule
from pkgrepo.repositories.search import SearchIndexCache
from pkgrepo.repositories.upkeep.housekeeping import DailyCollection, Housekeeping
from pkgrepo.repositories.upkeep.imports import StartsImports
from pkgrepo.repositories.upkeep.scrub import Mending, Scrub
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.repositories.upkeep.twins import TwinSchedule
from pkgrepo.startup import provisioning
from pkgrepo.startup.provisioning import check_key
from pkgrepo.storage.catalog.blobs.uploads import release_all_leases
from pkgrepo.storage.catalog.engine.connections import limit_page_caches
from pkgrepo.storage.catalog.packages.deployments import release_interrupted
from pkgrepo.storage.process_lock import ProcessLock

if TYPE_CHECKING:
    from pkgrepo.management.app import ManagementApp

API: Final = ("api", "token", "problems")  # what of the management API is at the root, beside exchanges of formats
CONSOLE: Final = ("ui", "badge", "feed")
LEASE = "background-work"  # name of the lock file in the folder of the database

SESSIONS_S = 3600.0


class Assembly:
    """
    A server without ports: ``factory`` is the protocol factory for them.

    ``peers`` are the other workers of its master, if it is one of several. After the stop ``counted`` are its metrics.
    """

    def __init__(self, config: Config, reactor: Any, peers: Peers | None = None) -> None:
        self.counted = b""
        self._peers = peers
        self._processes = 1 if peers is None else config.server.workers or 1
        self.core = Core(config, reactor, peers)
        self._database_dir = self.core.lease_folder
        self._presence = ProcessLock(self._database_dir)
        self._metrics: ProcessMetrics | None = None
        self._config = config
        self._reactor = reactor
        self._listener = Listener(config, reactor, registry=self.core.registry, in_thread=self.core.pools.disk)
        self._running = MultiService()
        self._caches: dict[str, SizedCache[Any] | Repeats] = {}
        self._tracing = make_tracing(config, reactor)

    @property
    def site(self) -> Site:
        """The HTTP site; it answers requests once the server has started."""
        return self._listener.site

    @property
    def factory(self) -> IProtocolFactory:
        """The site, behind TLS if it is configured."""
        return self._listener.factory

    async def start(self) -> str | None:
        """
        Start everything. Returns the first admin's password if it was generated just now.

        :raises PkgrepoError: something cannot be opened, or contradicts what is stored
        """
        core, config, reactor = self.core, self._config, self._reactor
        if config.server.profile == "small":
            share_one_pool()
            limit_page_caches(SMALL_PAGES)
        else:
            limit_page_caches(usable_memory() // PAGES_PART // self._processes)
        await core.start()
        first = await self._enter()
        identification = self._identification = await make_identification(core, config, reactor)
        password = await provisioning.prepare(core, config, identification.pipelines.issuers)
        core.load_used_formats()
        if first:
            await self._release_leases()
        self._events = await make_events(core, config, identification.authorizer, reactor)
        self._proxies = ProxyParts(core, config, reactor)
        self._proxies.check_settings()
        self._mirror = Mirror(core, config, reactor)
        self._refresh = make_refresh(core, config, self._mirror)
        self._backups = make_runs(core)
        self._twins = make_twins(core, config, self.site)
        services = self._services(identification, self._proxies)
        self._mirrors = Mirrors(services=services, formats=core.formats, jobs=core.jobs)
        mounts = Mounts(services=services, formats=core.formats)
        lag = ReactorLag(reactor)
        management = self._management(services, identification, lag)
        branches = self._branches(management)
        self.site.resource = RootResource(RootApp(mounts=mounts, access=services.access, branches=branches))
        self.site.request_context = core.catalog.pinned
        self.site.repeats.generation = core.catalog.generation
        reads = self.site.find_prepared = CachedReads(
            mounts=mounts,
            images=core.images,
            access=services.access,
            downloads=core.downloads,
            response_cache=services.response_cache,
            clock=seconds_of(core.clock),
        )
        if self._tracing is not None:
            self._tracing.start(self.site, core.catalog)
        self._listener.watch_certificate()
        replication, self._followed = make_replication(core, config, services, self._proxies, reactor)
        exclusive = ExclusiveServices(self._database_dir / LEASE, reactor, core.nodes)
        for service in (
            core.follower,
            core.descriptions,
            self._proxies.upkeep(),
            replication,
            self._events.sender,
            *maintenance(core, identification, config, self._refresh, reactor),
            *backups(core, self._backups, reactor),
            *([TwinSchedule(self._twins, core.jobs, reactor)] if self._twins.plans else []),
            MirrorSchedule(core.context, mirrors=self._mirrors, jobs=core.jobs, reactor=reactor),
            *self._commit_watch(),
        ):
            service.setServiceParent(exclusive.services)
        for service in (
            core.downloads,
            core.jobs,
            self._proxies.counters,
            self._proxies.rule_matches,
            *flushers(identification, reactor),
            lag,
            PeriodicTask(self._return_memory, reactor, every_s=RETURN_S, what="giving memory back"),
            UsedFormats(core.formats, core.registry, core.pools.cpu, reactor),
            *([] if core.relay is None else [core.relay]),
            exclusive,
        ):
            service.setServiceParent(self._running)
        self._begin_formats(services, exclusive, reads)
        await core.follower.mark_open(joining=not first)
        self._running.startService()
        return password

    async def _return_memory(self) -> None:
        await self.core.pools.cpu(return_freed_memory)

    def _begin_formats(self, services: Services, exclusive: ExclusiveServices, reads: CachedReads) -> None:
        """Start what formats run, of those that are loaded now, and of others when they are."""
        begun = set[str]()

        def begin(format_: Format) -> None:
            begun.add(format_.name)
            reads.add_pings(format_.ping_responses)
            for service in format_.background(services, self._reactor):
                service.setServiceParent(exclusive.services)
            for service in format_.running():
                service.setServiceParent(self._running)

        def begin_later(format_: Format) -> None:
            if format_.name in begun:  # it was loaded during the start, and this call has waited for the reactor
                return
            begin(format_)
            self._caches.update(format_.caches)
            self._share_memory()

        for each in self.core.loaded_formats():
            begin(each)
        self.core.on_format = begin_later

    def reload(self) -> None:
        """Apply what may change while the server runs: the certificate, for new connections."""
        self._listener.reload_certificate()

    async def stop(self, stop_receiving: Callable[[], None] | None = None) -> None:
        """
        Let transfers end, write what is only in memory, complete the readable layout, and close everything.

        ``stop_receiving`` is called when the transfers have ended: until then the news of peers may be about them.
        """
        grace_s = self._config.server.shutdown_grace_s
        ends_at = self._reactor.seconds() + grace_s
        self.core.follower.skip_pauses()
        await self._listener.drain(grace_s)
        if self._running.running:
            await self._running.stopService()
            await self._proxies.stop()
            await self._followed.close()
            await self._mirror.close()
            await self._events.poster.close()
            await self._identification.documents.close()
            for directory in self._identification.directories:
                directory.close()
            if stop_receiving is not None:
                stop_receiving()
            await wait_for_spawned(self._reactor, max(1.0, ends_at - self._reactor.seconds()))
            await self.core.wait_idle()
            if await self._leave():
                await self.core.follower.catch_up_and_mark_closed(ends_at - self._reactor.seconds())
            if self._metrics is not None and self._peers is not None:
                self.counted = await self._metrics.text()
        if self._tracing is not None:
            await self._tracing.stop()
        await self.core.stop()
        self._presence.release()
        self._listener.close()

    async def _enter(self) -> bool:
        """Note that this process serves the catalog. Returns whether it is the first one."""
        nodes = self.core.nodes
        first = await self.core.pools.disk(self._presence.acquire) is not None
        if nodes is not None:
            self.core.alone = await nodes.enter()
            await check_key(self.core)
        return first and self.core.alone

    async def _release_leases(self) -> None:
        """Release the uploads and deployments that killed processes worked on: no other process runs."""
        core = self.core
        await core.catalog.write(release_all_leases)
        for storage in core.registry.storages():
            now_ms = core.clock.now_ms()
            await core.catalog.write(release_interrupted, storage.id, now_ms, now_ms)

    async def _leave(self) -> bool:
        """End this note. Returns whether no other process serves the catalog."""
        nodes, here = self.core.nodes, self._presence.leave()
        # Each worker of a node leaves the others of all nodes, so that the last one of them knows that it is.
        return here if nodes is None else await nodes.leave()

    def _commit_watch(self) -> list[CommitWatch]:
        core = self.core
        if core.relay is None:
            return []
        every_s = WATCH_S if core.nodes is None else WATCH_NODES_S
        return [CommitWatch(core.catalog, core.follow, self._reactor, every_s)]

    def _services(self, identification: Identification, proxies: ProxyParts) -> Services:
        core, config = self.core, self._config
        return Services(
            catalog=core.catalog,
            registry=core.registry,
            content=core.content,
            pools=core.pools,
            clock=core.clock,
            access=identification.access,
            files=Files(registry=core.registry, stores=core.stores, first_reads=core.first_reads),
            response_cache=ResponseCache(core.catalog, core.clock, self.site.repeats.clear),
            downloads=core.downloads,
            searches=SearchIndexCache(core.catalog, core.clock, self._reactor),
            descriptions=core.descriptions,
            accounts=identification.accounts,
            images=core.images,
            proxy=proxies.serving(),
            formats=core.formats,
            pipelines=identification.pipelines,
            advisories=core.advisories,
            max_upload=config.server.max_upload,
            public_url=config.server.public_url.rstrip("/"),
        )

    def _limited_caches(self, services: Services) -> dict[str, SizedCache[Any] | Repeats]:
        """The caches by the names that metrics show, limited to the part of the memory that this process may use."""
        caches: dict[str, SizedCache[Any] | Repeats] = {
            "repeats": self.site.repeats,
            **services.response_cache.caches(),
        }
        for each in self.core.loaded_formats():
            caches.update(each.caches)
        self._caches = caches
        self._share_memory()
        return caches

    def _share_memory(self) -> None:
        memory = self._config.server.cache_memory
        usable = usable_memory() // CACHE_PART // self._processes
        share_memory(self._caches.values(), None if memory is None else memory // self._processes, usable)

    def _management(self, services: Services, identification: Identification, lag: ReactorLag) -> ManagementServices:
        core, config = self.core, self._config
        server_metrics = ServerMetrics(
            self.site,
            self._limited_caches(services),
            self._listener.certificate_expiry,
            database=config.database_path,
            audit=config.log.audit_file,
        )
        sources = (
            self._listener.metrics,
            lag,
            server_metrics,
            UpstreamMetrics(services.proxy.upstreams, core.registry),
            WebhookMetrics(self._events.sender),
            DirectoryMetrics(identification.directory_logins.outcomes),
        )
        if config.metrics.enabled:
            gather = None if self._peers is None else partial(self._peers.gather, METRICS)
            self._metrics = ProcessMetrics(sources, core.pools, gather)
            if self._peers is not None:
                self._peers.answer(METRICS, self._metrics.text)
        return ManagementServices(
            shared=services,
            formats=core.formats,
            companions=core.companions,
            folders=core.folders,
            buckets=core.buckets,
            secrets=core.secrets,
            on_change=core.on_change,
            maintenance=core.context,
            mender=core.mender,
            collector=core.collector,
            retention=core.retention,
            jobs=core.jobs,
            imports=Late(self._make_importers),
            mirrors=self._mirrors,
            backups=self._backups,
            twins=self._twins,
            advisory_refresh=self._refresh,
            cache_purge=self._proxies.purge,
            callers=identification,
            events=self._events,
            database_dir=self._database_dir,
            open_install=config.compat.open_install,
            starter_upstreams=config.bootstrap.upstreams,
            token_max_days=config.auth.token_max_days,
            low_water=config.data.low_water,
            started_at=from_ms(core.clock.now_ms()),
            request_times=self._listener.metrics.times,
            reactor_lag=lag.histogram,
        )

    def _make_importers(self) -> StartsImports:
        from pkgrepo.composition.imports import make_importers  # noqa: PLC0415 - what a server needs once in its life

        return make_importers(self.core, self._config, self._config.imports.folders)

    def _branches(self, services: ManagementServices) -> dict[str, IResource]:
        """
        The resources by the first segment of the path, or by the first two.

        The API and the console are imported by the first request for them, which many servers of packages never get,
        and formats that no repository has by one that names no repository.
        """
        in_thread, formats = self.core.pools.cpu, self.core.formats

        def make_api() -> ManagementApp:
            from pkgrepo.management.app import ManagementApp  # noqa: PLC0415 - see above

            return ManagementApp(services)

        def make_console() -> dict[str, IResource]:
            from pkgrepo.web.app import WebApp  # noqa: PLC0415 - see above

            return WebApp(api().dispatcher, services.shared.access, self.core.pools, formats).branches()

        api = Late(make_api)
        exchanges = {each for format_ in formats.values() for each in format_.exchanges}
        branches = {
            **health.branches(services),
            **late_branches(API, lambda: api().branches(), in_thread),
            **late_branches(CONSOLE, make_console, in_thread),
            **{each: LateResource(Late(partial(_exchange, services, each)), in_thread) for each in exchanges},
        }
        tokens = LateResource(Late(lambda: api().token_resource()), in_thread)
        for each in formats.values():
            make = partial(_branches_of, each, services.shared, tokens)
            branches.update(make() if each.is_loaded else late_branches(each.branch_names, make, in_thread))
        if self._metrics is not None:
            branches["metrics"] = health.answering_get(partial(answer_metrics, services, self._metrics))
        return branches


def _exchange(services: ManagementServices, branch: str) -> IResource:
    from pkgrepo.management.tokens.pipelines import exchange_resource  # noqa: PLC0415 - as above

    return exchange_resource(services, branch)


def _branches_of(format_: Format, services: Services, tokens: IResource) -> Mapping[str, IResource]:
    return format_.branches(services, tokens)


def maintenance(
    core: Core, identification: Identification, config: Config, refresh: AdvisoryRefresh, reactor: Any
) -> Iterator[IService]:
    """
    Housekeeping, the removal of sessions that ended, retention, refreshes, what reads and mends stored bytes, and the
    daily garbage collection.
    """
    yield PeriodicTask(identification.sessions.remove_old, reactor, every_s=SESSIONS_S, what="removing old sessions")
    if config.auth.oidc or config.auth.ldap:
        check = identification.daily_check.run
        yield PeriodicTask(check, reactor, every_s=SESSIONS_S, what="asking identity providers and directories")
    yield PeriodicTask(identification.pipelines.remove_old, reactor, every_s=SESSIONS_S, what="removing old tokens")
    yield Housekeeping(
        core.context,
        sweep=Sweep(core.context),
        exclusive_since=core.exclusive_since,
        audit_kept=timedelta(days=config.audit.retention_days),
        downloads_kept=timedelta(days=config.downloads.log_days),
        reactor=reactor,
    )
    yield RetentionSchedule(core.context, work=core.retention, jobs=core.jobs, reactor=reactor)
    if refresh.source:
        every_s = config.advisories.refresh_s
        yield RefreshSchedule(core.context, refresh=refresh, jobs=core.jobs, every_s=every_s, reactor=reactor)
    yield Mending(core.context, mender=core.mender, reactor=reactor)
    if config.data.scrub_days:
        yield Scrub(core.context, mender=core.mender, days=config.data.scrub_days, reactor=reactor)
    if config.gc.daily:
        yield DailyCollection(core.context, collector=core.collector, jobs=core.jobs, reactor=reactor)


def backups(core: Core, runs: BackupRuns, reactor: Any) -> Iterator[IService]:
    """The backups by schedule, if they have a destination."""
    if runs.plan is not None:
        yield BackupSchedule(runs, catalog=core.catalog, clock=core.clock, jobs=core.jobs, reactor=reactor)


def flushers(identification: Identification, reactor: Any) -> Iterator[IService]:
    """Periodic writes of token uses and audit rows, which are collected in memory."""
    audit_log = identification.audit_log

    def flusher(flush: Work, every_s: float, last: Work) -> IService:
        what = "what gathered in memory"
        failed = "{what} could not be written"
        return PeriodicTask(flush, reactor, every_s=every_s, what=what, failed=failed, last=last)

    yield flusher(identification.uses.flush, FLUSH_EVERY_S, last=identification.uses.flush)
    yield flusher(identification.canaries.flush, FLUSH_S, last=identification.canaries.flush)
    yield flusher(audit_log.flush, FLUSH_S, last=audit_log.flush)
    yield flusher(audit_log.flush_own, COUNTS_S, last=audit_log.close)
