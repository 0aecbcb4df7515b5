"""A whole server except for its ports, joined from its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from twisted.application.service import IService
from twisted.internet.interfaces import IProtocolFactory

from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S
from pkgrepo.composition.advisories import Mirror, make_refresh
from pkgrepo.composition.backups import make_runs
from pkgrepo.composition.core import Core
from pkgrepo.composition.events import make_events
from pkgrepo.composition.identification import make_identification
from pkgrepo.composition.imports import make_importers
from pkgrepo.composition.listener import Listener
from pkgrepo.composition.processes.exclusive import WATCH_NODES_S, WATCH_S, CommitWatch, ExclusiveServices
from pkgrepo.composition.replication import make_replication
from pkgrepo.composition.tracing.setup import make_tracing
from pkgrepo.composition.twins import make_twins
from pkgrepo.composition.upstreams import ProxyParts
from pkgrepo.concurrency.lru import SizedCache, share_memory
from pkgrepo.concurrency.services import MultiService, PeriodicTask, Work, wait_for_spawned
from pkgrepo.config import Config
from pkgrepo.gateway.cached_reads import CachedReads
from pkgrepo.gateway.mounts import Mounts
from pkgrepo.gateway.responses.cache import ResponseCache
from pkgrepo.gateway.responses.content import Files
from pkgrepo.gateway.root_app import RootApp, RootResource
from pkgrepo.gateway.services import Services
from pkgrepo.http.repeats import Repeats
from pkgrepo.http.site import Site
from pkgrepo.management.api.audit_log import COUNTS_S, FLUSH_S
from pkgrepo.management.api.services import Identification, ManagementServices
from pkgrepo.management.app import ManagementApp
from pkgrepo.management.metrics.durations import ReactorLag
from pkgrepo.management.metrics.exposition import DirectoryMetrics, ProcessMetrics, UpstreamMetrics, WebhookMetrics
from pkgrepo.management.metrics.server import ServerMetrics
from pkgrepo.mirroring.mirrors import Mirrors
from pkgrepo.mirroring.schedule import MirrorSchedule
from pkgrepo.process.resources import CACHE_PART, PAGES_PART, SMALL_PAGES, share_one_pool, usable_memory
from pkgrepo.process.workers.master import METRICS
from pkgrepo.process.workers.peers import Peers
from pkgrepo.repositories.advisories.refresh import AdvisoryRefresh, RefreshSchedule
from pkgrepo.repositories.backup.runs import BackupRuns, BackupSchedule
from pkgrepo.repositories.clock import from_ms, seconds_of
from pkgrepo.repositories.retention.schedule import RetentionSchedule
from pkgrepo.repositories.search import SearchIndexCache
from pkgrepo.repositories.upkeep.housekeeping import DailyCollection, Housekeeping
from pkgrepo.repositories.upkeep.scrub import Mending, Scrub
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.repositories.upkeep.twins import TwinSchedule
from pkgrepo.startup import provisioning
from pkgrepo.startup.provisioning import check_key
from pkgrepo.storage.catalog.blobs.uploads import release_all_leases
from pkgrepo.storage.catalog.engine.connections import limit_page_caches
from pkgrepo.storage.catalog.packages.deployments import release_interrupted
from pkgrepo.storage.process_lock import ProcessLock
from pkgrepo.web.app import WebApp

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
        formats, tokens = core.formats.values(), management.token_resource()
        branches = management.branches()
        for each in formats:
            branches.update(each.branches(services, tokens))
        branches.update(WebApp(management.dispatcher, services.access, core.pools, core.formats).branches())
        self.site.resource = RootResource(RootApp(mounts=mounts, access=services.access, branches=branches))
        self.site.request_context = core.catalog.pinned
        self.site.repeats.generation = core.catalog.generation
        self.site.find_prepared = CachedReads(
            mounts=mounts,
            images=core.images,
            access=services.access,
            downloads=core.downloads,
            response_cache=services.response_cache,
            ping_responses={path: answer for each in formats for path, answer in each.ping_responses.items()},
            clock=seconds_of(core.clock),
        )
        if self._tracing is not None:
            self._tracing.start(self.site, core.catalog)
        self._listener.watch_certificate()
        replication, self._followed = make_replication(core, config, services, self._proxies, reactor)
        exclusive = ExclusiveServices(self._database_dir / LEASE, reactor, core.nodes)
        for service in (
            core.follower,
            self._proxies.upkeep(),
            replication,
            self._events.sender,
            *maintenance(core, identification, config, self._refresh, reactor),
            *backups(core, self._backups, reactor),
            *([TwinSchedule(self._twins, core.jobs, reactor)] if self._twins.plans else []),
            MirrorSchedule(core.context, mirrors=self._mirrors, jobs=core.jobs, reactor=reactor),
            *(service for each in formats for service in each.background(services, reactor)),
            *self._commit_watch(),
        ):
            service.setServiceParent(exclusive.services)
        for service in (
            core.downloads,
            core.jobs,
            self._proxies.counters,
            self._proxies.rule_matches,
            *flushers(identification, reactor),
            *(service for each in formats for service in each.running()),
            lag,
            *([] if core.relay is None else [core.relay]),
            exclusive,
        ):
            service.setServiceParent(self._running)
        await core.follower.mark_open(joining=not first)
        self._running.startService()
        return password

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
        return [CommitWatch(core.catalog, core.follower, self._reactor, every_s)]

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
        for each in self.core.formats.values():
            caches.update(each.caches)
        memory = self._config.server.cache_memory
        usable = usable_memory() // CACHE_PART // self._processes
        share_memory(caches.values(), None if memory is None else memory // self._processes, usable)
        return caches

    def _management(self, services: Services, identification: Identification, lag: ReactorLag) -> ManagementApp:
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
        return ManagementApp(
            ManagementServices(
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
                imports=make_importers(core, config, config.imports.folders),
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
            ),
            self._metrics,
        )


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
