"""Every part of a running server, made and joined here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from twisted.application.service import MultiService, Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.web.resource import Resource

from pkgrepo.auth.accounts import Accounts
from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.checkers import PasswordChecker, SignedChecker, TokenChecker
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.login.realm import make_portal
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.login.unlocks import NewUnlocks
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens, SigningKeys
from pkgrepo.auth.tokens.text import hide_tokens
from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S, TokenUses
from pkgrepo.config import Config
from pkgrepo.diagnostics.descriptors import is_out_of_descriptors
from pkgrepo.formats.container.format import ContainerFormat
from pkgrepo.formats.npm.format import NpmFormat
from pkgrepo.formats.python.format import PythonFormat
from pkgrepo.gateway.access import Access
from pkgrepo.gateway.content import Files
from pkgrepo.gateway.early_reads import EarlyReads
from pkgrepo.gateway.front_door import FrontDoor
from pkgrepo.gateway.hot_answers import Entry, HotAnswers
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.mounts import Mounts
from pkgrepo.gateway.services import Services
from pkgrepo.http.access_log import LineLog
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.http.site import Site, make_site
from pkgrepo.http.tls import ServerCertificate, tls_factory
from pkgrepo.management.api import audit_trail
from pkgrepo.management.api.audit_trail import AuditTrail
from pkgrepo.management.api.line_file import LineFile
from pkgrepo.management.api.services import ManagementServices, ManagementSettings
from pkgrepo.management.app import ManagementApp
from pkgrepo.management.figures.reactor_lag import ReactorLag
from pkgrepo.management.figures.requests import RequestFigures
from pkgrepo.management.figures.server import ServerFigures
from pkgrepo.model import Storage
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.downloads import DownloadRecorder
from pkgrepo.repositories.images.quarantine import QuarantineWatch
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.search.indexes import SearchIndexes
from pkgrepo.repositories.stores import Stores
from pkgrepo.repositories.upkeep.daily_gc import DailyCollection
from pkgrepo.repositories.upkeep.gc import GarbageCollector
from pkgrepo.repositories.upkeep.housekeeping import Housekeeping
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.startup import provisioning as first_start
from pkgrepo.storage.blobs.durability import Durability, storage_error
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.server import settings, storages
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.pools import Pools
from pkgrepo.storage.process_lock import Presence
from pkgrepo.storage.readable_layout import ReadableLayout

from . import __version__
from .interfaces import IBlobStore, IFormat

log = Logger()

HOT_BYTES = 256 * 1024 * 1024  # bytes of answers kept in memory


class Core:
    """What works without a network: catalog, blobs, repositories. The administrator's commands use this alone."""

    def __init__(self, config: Config, reactor: Any) -> None:
        self.config = config
        self.reactor = reactor
        self.clock = SystemClock()
        self.pools = Pools(reactor)
        self.catalog = SqliteCatalog(config.database_path, reactor=reactor)
        self.registry = Registry(self.catalog)
        self.stores = Stores(self._open_store)
        self.alone_since: dict[int, datetime] = {}
        self._presences: dict[Path, Presence] = {}
        self.downloads = DownloadRecorder(catalog=self.catalog, clock=self.clock, reactor=reactor)
        self.passwords = Passwords(self.pools.cpu, reactor, min_length=config.auth.password_min)
        self.containers = ContainerFormat(
            service=config.container.service,
            ping=config.container.ping,
            trusted_keys=config.container.trusted_keys,
        )
        self.node = NpmFormat(config.npm.advisories)
        self.python = PythonFormat()
        self.formats: dict[str, IFormat] = {each.name: each for each in (self.containers, self.node, self.python)}
        self.follower = LayoutFollower(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            pools=self.pools,
            formats=self.formats,
            layout_of=readable_layout,
            image_formats=(self.containers.name,),
        )
        self.publisher = Publisher(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            clock=self.clock,
            observer=self.follower.poke,
        )
        self.collector = GarbageCollector(
            catalog=self.catalog, stores=self.stores, clock=self.clock, observer=self.follower.poke
        )
        self.jobs = Jobs(catalog=self.catalog, clock=self.clock, reactor=reactor)

    async def start(self) -> None:
        """Open the catalog. :raises PkgrepoError: it cannot be used, or a setting contradicts itself"""
        self.containers.keyring.check()
        data = self.config.data
        data.dir.mkdir(parents=True, exist_ok=True, mode=0o750)
        self.pools.start()
        await self.catalog.start()
        uid: str | None = self.catalog.look(settings.server_uid)
        if uid is None:
            uid = await self.catalog.write(settings.ensure_server_uid)
        self.folders = StorageFolders(data.dir, uid, Durability(data.fsync))

    async def open_storages(self) -> None:
        """
        Open every storage; the paths of those in the data folder become relative to it.

        :raises Conflict: one is missing, or belongs to another catalog; :raises StorageFailed: one cannot be opened
        """
        for storage in self.registry.storages():
            await self.stores.open(storage)
            path = self.folders.spell(self.folders.folder(storage))
            if path != storage.settings["path"]:
                changed = {**storage.settings, "path": path}
                await self.catalog.write(
                    storages.update_storage, storage.id, settings=changed, now_ms=self.clock.now_ms()
                )

    async def stop(self) -> None:
        """Close everything; what was acknowledged stays."""
        await self.rest()
        await self.catalog.stop()
        await self.pools.stop()
        for presence in self._presences.values():
            presence.leave()

    async def rest(self) -> None:
        """
        Let what clients that have left set going come to its end: uploads are kept or cleared away, publishes finished.

        Nobody waits for that work. But each of its steps waits for a thread or the catalog, and begins the next one
        within the reactor's turn in which it ends.
        """
        while any([await self.catalog.rest(), await self.pools.rest()]):
            next_turn: Deferred[None] = Deferred()
            self.reactor.callLater(0, next_turn.callback, None)
            await next_turn

    async def _open_store(self, storage: Storage) -> IBlobStore:
        folder = self.folders.folder(storage)
        try:
            await self.pools.disk(self.folders.check, storage.name, storage.uid, folder)
        except OSError as error:
            raise storage_error(storage.name, error) from error
        store = FilesystemBlobStore(
            folder,
            name=storage.name,
            pools=self.pools,
            uid=storage.uid,
            low_water=self.config.data.low_water,
            fsync=self.config.data.fsync,
        )
        await store.start(create=False)
        await self._enter(storage.id, store.paths.root)
        try:
            await self.pools.disk(self.folders.claim, folder)
            await self.pools.disk(self.folders.remember, storage)
        except OSError as error:
            if not is_out_of_descriptors(error):
                log.failure("storage {storage} could not be noted as one of this catalog", storage=storage.name)
        return store

    async def _enter(self, storage_id: int, root: Path) -> None:
        """Mark the folder of a storage as in use. The mark of an earlier opening ends once the new one holds."""
        presence = Presence(root)
        since = await self.pools.disk(presence.enter)
        if since is not None:
            self.alone_since[storage_id] = since
        earlier = self._presences.get(root)
        if earlier is None or presence.held:
            self._presences[root] = presence
            if earlier is not None:
                earlier.leave()


def readable_layout(store: IBlobStore) -> ReadableLayout | None:
    """The readable layout beside a store's blobs, where they are files."""
    if not isinstance(store, FilesystemBlobStore):
        return None
    return ReadableLayout(store.paths.root / "repositories", store.paths.root / "blobs")


class Assembly:
    """A whole server but for its ports: ``factory`` is what they listen with."""

    def __init__(self, config: Config, reactor: Any) -> None:
        self.core = Core(config, reactor)
        self._config = config
        self._reactor = reactor
        self._certificate = _certificate(config)
        self._access_log = _access_log(config, reactor)
        self._figures = RequestFigures(self.core.registry, self._access_log)
        # Ports are bound before anything else stands, so what they serve is filled in by ``start``.
        self.site: Site = make_site(
            Resource(),
            reactor=reactor,
            limits=_limits(config),
            trusted_proxies=config.server.trusted_proxies,
            access_log=self._figures,
            server_header=f"pkgrepo/{__version__}",
            in_thread=self.core.pools.disk,
        )
        self.factory: IProtocolFactory = (
            self.site if self._certificate is None else tls_factory(self._certificate, self.site, reactor)
        )
        self._running = MultiService()

    async def start(self) -> str | None:
        """
        Bring everything up; the first admin's password, if it was made up just now.

        :raises PkgrepoError: something cannot be opened, or contradicts what is stored
        """
        core, config = self.core, self._config
        await core.start()
        catalog = core.catalog
        password = await first_start.prepare(core, config)
        secret = await catalog.write(settings.ensure_secret, "bearer_secret")
        uses = TokenUses(catalog)
        throttle = Throttle(limit=config.limits.login_failures, unlocks=NewUnlocks(catalog))
        bearer = BearerTokens(catalog, SigningKeys.single(secret))
        portal = make_portal(
            catalog,
            [
                PasswordChecker(catalog, core.passwords, throttle),
                TokenChecker(catalog),
                SignedChecker(catalog, bearer),
            ],
        )
        authorizer = Authorizer(catalog, anonymous=config.auth.anonymous)
        authenticator = Authenticator(catalog, portal, uses)
        access = Access(authenticator, authorizer, config.server.public_url)
        trail = AuditTrail(catalog, core.clock, self._reactor, _audit_sink(config))
        cache: ResponseCache[Entry] = ResponseCache(HOT_BYTES)
        hot = HotAnswers(cache, core.clock)
        services = Services(
            catalog=catalog,
            registry=core.registry,
            publisher=core.publisher,
            pools=core.pools,
            clock=core.clock,
            access=access,
            files=Files(registry=core.registry, stores=core.stores),
            hot=hot,
            downloads=core.downloads,
            searches=SearchIndexes(catalog, core.clock, self._reactor),
            accounts=Accounts(
                catalog=catalog,
                authenticator=authenticator,
                passwords=core.passwords,
                now_ms=core.clock.now_ms,
                token_max_days=config.auth.token_max_days,
                copy_entry=trail.copy,
            ),
            max_upload=config.server.max_upload,
            public_url=config.server.public_url.rstrip("/"),
        )
        mounts = Mounts(services=services, formats=core.formats)
        images = ImageAddresses(
            core.registry, default=config.container.default_repository, hosts=config.container.hosts
        )
        lag = ReactorLag(self._reactor)
        management = ManagementApp(
            ManagementServices(
                catalog=catalog,
                registry=core.registry,
                stores=core.stores,
                folders=core.folders,
                publisher=core.publisher,
                observer=core.follower.poke,
                access=access,
                authenticator=authenticator,
                authorizer=authorizer,
                passwords=core.passwords,
                bearer=bearer,
                formats=core.formats,
                pools=core.pools,
                clock=core.clock,
                collector=core.collector,
                jobs=core.jobs,
                image_keys={core.containers.name: core.containers.keyring.ids},
                settings=_management_settings(config),
                images=images,
                trail=trail,
            ),
            figures=(self._figures, lag, self._server_figures(cache)) if config.metrics.enabled else None,
        )
        branches = management.branches()
        branches["v2"] = core.containers.site(services, images, management.token_resource())
        self.site.resource = FrontDoor(mounts=mounts, access=access, branches=branches).app.resource()
        self.site.early = EarlyReads(
            catalog=catalog,
            mounts=mounts,
            images=images,
            access=access,
            downloads=core.downloads,
            hot=hot,
            welcome=core.containers.welcome(),
        )
        if self._certificate is not None and config.tls.reload == "auto":
            self._certificate.watch(self._reactor)
        housekeeping = Housekeeping(
            catalog=catalog,
            registry=core.registry,
            stores=core.stores,
            sweep=Sweep(catalog=catalog, pools=core.pools, layout_of=readable_layout),
            alone_since=core.alone_since,
            audit_kept=timedelta(days=config.audit.retention_days),
            clock=core.clock,
            reactor=self._reactor,
        )
        collection = DailyCollection(
            catalog=catalog,
            registry=core.registry,
            collector=core.collector,
            jobs=core.jobs,
            clock=core.clock,
            reactor=self._reactor,
        )
        quarantine = QuarantineWatch(
            catalog=catalog,
            registry=core.registry,
            publisher=core.publisher,
            catch_up=core.containers.judging(services).catch_up,
            keys_of=core.containers.keyring.ids,
            clock=core.clock,
            reactor=self._reactor,
        )
        flushers = (
            Flusher(uses.flush, FLUSH_EVERY_S, self._reactor),
            Flusher(trail.flush, audit_trail.FLUSH_S, self._reactor),
            Flusher(trail.sum_up, audit_trail.SUM_S, self._reactor, last=trail.close),
        )
        daily = (collection,) if config.gc.daily else ()
        for each in (core.follower, core.downloads, core.jobs, *flushers, housekeeping, *daily, quarantine, lag):
            each.setServiceParent(self._running)
        await core.follower.begin()
        self._running.startService()
        return password

    def _server_figures(self, answers: ResponseCache[Entry]) -> ServerFigures:
        certificate = self._certificate
        return ServerFigures(
            self.site,
            {"answers": answers, "packuments": self.core.node.cache, "pages": self.core.python.cache},
            lambda: None if certificate is None else certificate.expires_at,
            database=self._config.database_path,
            audit=self._config.log.audit_file,
        )

    def reload(self) -> None:
        """Take up what may change while the server runs: the certificate, for new connections."""
        if self._certificate is not None:
            self._certificate.take_up()

    async def stop(self) -> None:
        """Let transfers end, write down what is only in memory, have the readable layout show everything, close."""
        grace_s = self._config.server.shutdown_grace_s
        ends_at = self._reactor.seconds() + grace_s
        self.core.follower.hurry()
        await self.site.drain(grace_s)
        if self._certificate is not None:
            self._certificate.unwatch()
        if self._running.running:
            await self._running.stopService()
            await self.core.rest()
            await self.core.follower.finish(ends_at - self._reactor.seconds())
        await self.core.stop()
        if self._access_log is not None:
            self._access_log.flush()


class Flusher(Service):
    """Has what gathers in memory written down every ``every_s`` seconds, and at the stop, then by ``last``."""

    def __init__(
        self,
        flush: Callable[[], Coroutine[Any, Any, None]],
        every_s: float,
        reactor: Any,
        *,
        last: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._last = last or flush
        self._every_s = every_s
        self._loop = LoopingCall(self._run, flush)
        self._loop.clock = reactor

    def startService(self) -> None:
        """Begin."""
        super().startService()  # type: ignore[no-untyped-call]
        self._loop.start(self._every_s, now=False)

    def stopService(self) -> Deferred[None]:
        """Write what is left."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._loop.stop()
        return self._run(self._last)

    def _run(self, flush: Callable[[], Coroutine[Any, Any, None]]) -> Deferred[None]:
        # What fails now may work the next time.
        return Deferred.fromCoroutine(flush()).addErrback(
            lambda failure: log.failure("what gathered in memory could not be written", failure=failure)
        )


def _management_settings(config: Config) -> ManagementSettings:
    return ManagementSettings(
        version=__version__,
        database_dir=config.database_path.parent,
        open_install=config.compat.open_install,
        public_url=config.server.public_url.rstrip("/"),
        max_upload=config.server.max_upload,
        token_max_days=config.auth.token_max_days,
        low_water=config.data.low_water,
    )


def _limits(config: Config) -> HttpLimits:
    server = config.server
    return HttpLimits(
        header_bytes=server.header_bytes,
        header_count=server.header_count,
        header_deadline_s=server.header_deadline_s,
        idle_timeout_s=server.idle_timeout_s,
        min_body_rate=server.min_body_rate,
        write_stall_s=server.write_stall_s,
    )


def _audit_sink(config: Config) -> Callable[[bytes], None] | None:
    if config.log.audit_file is None:
        return None
    file = LineFile(config.log.audit_file)
    file.close_to_others()
    return file.append


def _access_log(config: Config, reactor: Any) -> LineLog | None:
    if not config.log.access:
        return None
    style: Literal["text", "json"] = "json" if config.log.format == "json" else "text"
    return LineLog(sys.stdout.buffer, reactor=reactor, style=style, scrub=hide_tokens, agents=config.log.user_agent)


def _certificate(config: Config) -> ServerCertificate | None:
    if config.tls.cert is None or config.tls.key is None:
        return None
    return ServerCertificate(str(config.tls.cert), str(config.tls.key))
