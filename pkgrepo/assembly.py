"""Every part of a running server, made and joined here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from datetime import timedelta
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
from pkgrepo.auth.login.realm import make_portal
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.login.unlocks import NewUnlocks
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens, SigningKeys
from pkgrepo.auth.tokens.text import hide_tokens
from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S, TokenUses
from pkgrepo.config import Config
from pkgrepo.gateway.access import Access
from pkgrepo.gateway.content import Files
from pkgrepo.gateway.early_reads import EarlyReads
from pkgrepo.gateway.front_door import FrontDoor
from pkgrepo.gateway.hot_answers import Entry, HotAnswers
from pkgrepo.gateway.mounts import Mounts
from pkgrepo.gateway.services import Services
from pkgrepo.http.access_log import LineLog
from pkgrepo.http.answers import Answer
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.http.site import Site, make_site
from pkgrepo.http.tls import ServerCertificate, tls_factory
from pkgrepo.management.api import audit_trail
from pkgrepo.management.api.audit_trail import AuditTrail
from pkgrepo.management.api.line_file import LineFile
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.app import ManagementApp
from pkgrepo.management.figures.reactor_lag import ReactorLag
from pkgrepo.management.figures.requests import RequestFigures
from pkgrepo.management.figures.server import ServerFigures
from pkgrepo.repositories.search.index_cache import SearchIndexCache
from pkgrepo.repositories.upkeep.daily_gc import DailyCollection
from pkgrepo.repositories.upkeep.housekeeping import Housekeeping
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.startup import provisioning as first_start
from pkgrepo.storage.catalog.server import settings

from . import __version__
from .core import Core, readable_layout
from .interfaces import IBackgroundFormat, ICachingFormat, IRootFormat

log = Logger()

HOT_BYTES = 256 * 1024 * 1024  # bytes of answers kept in memory


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
            searches=SearchIndexCache(catalog, core.clock, self._reactor),
            accounts=Accounts(
                catalog=catalog,
                authenticator=authenticator,
                passwords=core.passwords,
                now_ms=core.clock.now_ms,
                token_max_days=config.auth.token_max_days,
                copy_entry=trail.copy,
            ),
            images=core.images,
            max_upload=config.server.max_upload,
            public_url=config.server.public_url.rstrip("/"),
        )
        mounts = Mounts(services=services, formats=core.formats)
        lag = ReactorLag(self._reactor)
        management = ManagementApp(
            ManagementServices(
                shared=services,
                formats=core.formats,
                stores=core.stores,
                folders=core.folders,
                on_change=core.follower.notify,
                collector=core.collector,
                jobs=core.jobs,
                authenticator=authenticator,
                authorizer=authorizer,
                passwords=core.passwords,
                bearer=bearer,
                trail=trail,
                database_dir=config.database_path.parent,
                open_install=config.compat.open_install,
                token_max_days=config.auth.token_max_days,
                low_water=config.data.low_water,
            ),
            figures=(self._figures, lag, self._server_figures(cache)) if config.metrics.enabled else None,
        )
        branches = management.branches()
        ping_answers: dict[bytes, Answer] = {}
        background: list[Service] = []
        for each in core.formats.values():
            if IRootFormat.providedBy(each):
                branches.update(each.branches(services, management.token_resource()))
                ping_answers.update(each.ping_answers())
            if IBackgroundFormat.providedBy(each):
                background.extend(each.background_services(services, self._reactor))
        self.site.resource = FrontDoor(mounts=mounts, access=access, branches=branches).app.resource()
        self.site.early = EarlyReads(
            catalog=catalog,
            mounts=mounts,
            images=core.images,
            access=access,
            downloads=core.downloads,
            hot=hot,
            welcome=ping_answers,
        )
        if self._certificate is not None and config.tls.reload == "auto":
            self._certificate.watch(self._reactor)
        housekeeping = Housekeeping(
            catalog=catalog,
            registry=core.registry,
            stores=core.stores,
            sweep=Sweep(catalog=catalog, pools=core.pools, layout_of=readable_layout),
            exclusive_since=core.exclusive_since,
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
        flushers = (
            Flusher(uses.flush, FLUSH_EVERY_S, self._reactor),
            Flusher(trail.flush, audit_trail.FLUSH_S, self._reactor),
            Flusher(trail.sum_up, audit_trail.SUM_S, self._reactor, last=trail.close),
        )
        daily = (collection,) if config.gc.daily else ()
        for service in (core.follower, core.downloads, core.jobs, *flushers, housekeeping, *daily, *background, lag):
            service.setServiceParent(self._running)
        await core.follower.mark_open()
        self._running.startService()
        return password

    def _server_figures(self, answers: ResponseCache[Entry]) -> ServerFigures:
        certificate = self._certificate
        caches: dict[str, ResponseCache[Any]] = {"answers": answers}
        for each in self.core.formats.values():
            if ICachingFormat.providedBy(each):
                caches.update(each.caches())
        return ServerFigures(
            self.site,
            caches,
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
        self.core.follower.skip_pauses()
        await self.site.drain(grace_s)
        if self._certificate is not None:
            self._certificate.unwatch()
        if self._running.running:
            await self._running.stopService()
            await self.core.wait_idle()
            await self.core.follower.catch_up_and_mark_closed(ends_at - self._reactor.seconds())
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
