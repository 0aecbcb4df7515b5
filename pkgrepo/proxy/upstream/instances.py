"""The upstreams of one process: one client per route, made when it is first used."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import cached_property, partial
from typing import Any
from weakref import WeakSet

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger
from twisted.web.iweb import IPolicyForHTTPS

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.rate_limit import RateLimit
from pkgrepo.errors import Invalid, UpstreamMisconfigured
from pkgrepo.model import UpstreamHealth
from pkgrepo.outbound.addresses import AddressGuard
from pkgrepo.outbound.agent import Ways
from pkgrepo.outbound.http_proxies import ProxyChoice
from pkgrepo.proxy.upstream.limits import HostPermits
from pkgrepo.proxy.upstream.routes import Route, UpstreamSettings
from pkgrepo.tls_policy import make_policy

from .client import Shared, Upstream
from .failures import FORBIDDEN

MOST_CHECKS, CHECKS_WITHIN_S = 20, 60.0  # checks of one person in so many seconds
UNSAVED = 0  # the id of a repository that is tried before it is saved; what its routes do is not counted
MOST_UPSTREAMS = 1000  # in memory; each takes 3 KiB without connections

log = Logger()


class Upstreams:
    """
    Clients by repository and name of the route; the ones that were used last are kept.

    ``authorize`` returns the value of the Authorization field for a route, or None. ``jitter`` returns a number from 0
    to 1. ``on_traffic`` is called after each request with the id of the repository, and what L{Upstream} says;
    ``on_health`` with that id, the name of the route, and what L{Health} says of its ``on_change``.
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        reactor: Any,
        *,
        authorize: Callable[[Route], str | None],
        jitter: Callable[[], float] = random.random,
        on_traffic: Callable[[int, int, float], None] = lambda *_: None,
        on_health: Callable[[int, str, str | None], None] = lambda *_: None,
    ) -> None:
        self._on_health = on_health
        self._settings = settings
        self._authorize = authorize
        self._on_traffic = on_traffic
        self._reactor = reactor
        self._guard = AddressGuard(settings.allow_private)
        permits = HostPermits(settings.max_connections_per_host, reactor)
        self._shared = Shared(reactor=reactor, settings=settings, permits=permits, jitter=jitter)
        self.checks = RateLimit(MOST_CHECKS, CHECKS_WITHIN_S, reactor.seconds)  # by name of the person who asks
        self._recent: Lru[tuple[int, str], Upstream] = Lru(MOST_UPSTREAMS, Upstream.retire)
        self._unusable: dict[tuple[int, str], tuple[Route, str]] = {}  # those that no client can be made for, and why
        self._all: WeakSet[Upstream] = WeakSet()  # with those that are forgotten and still have requests

    @property
    def document_timeout_s(self) -> float | None:
        """How long the response to a question may take in all."""
        return self._settings.documents.total_s

    def check_settings(self) -> None:
        """
        Check the settings that name other things.

        :raises Invalid: a proxy in the environment has no usable URL, or ``proxy.ca_file`` has no certificates
        """
        _ = self._proxies, self._policy

    def of(self, repository_id: int, route: Route) -> Upstream:
        """
        The client of a route. A client for an earlier value of the route finishes its requests, and is forgotten.

        :raises UpstreamFailed: a file of certificates, of the route or of the server, cannot be used
        :raises PkgrepoError: what ``authorize`` raises
        """
        key = repository_id, route.name
        known = self._recent.get(key)
        if known is not None and known.route == route:
            return known
        made = self._make(repository_id, route)
        if known is not None:
            known.retire()
        self._recent.put(key, made)
        return made

    @asynccontextmanager
    async def fresh(self, repository_id: int, route: Route) -> AsyncIterator[Upstream]:
        """
        Another client of a route, without connections and without a past, which is closed at the end of the block.

        :raises UpstreamMisconfigured, PkgrepoError: see ``of``
        """
        made = self._make(repository_id, route)
        try:
            yield made
        finally:
            await made.close()

    def health(self, repository_id: int, route: Route) -> UpstreamHealth | None:
        """What is known about a route; None if it was not used yet."""
        known = self._recent.get((repository_id, route.name))
        report = None if known is None or known.route != route else known.health()
        return report if report is not None and (report.successes or report.failures or report.limited_until) else None

    def fault(self, repository_id: int, route: Route) -> str | None:
        """
        What keeps a route from being used until a setting is changed, as a clause about "it"; None if nothing is known
        to do so.
        """
        place = (repository_id, route.name)
        known, unusable = self._recent.get(place), self._unusable.get(place)
        if known is not None and known.route == route and known.fault is not None:
            return known.fault
        if unusable is not None and unusable[0] == route:
            return unusable[1]
        return None if self._guard.permits_unresolved(route.target.host) else FORBIDDEN

    async def try_connections(self, repository_id: int, routes: Iterable[Route]) -> None:
        """Connect to some routes, for seconds at most, so that ``fault`` knows theirs."""

        async def attempt(route: Route) -> None:
            with suppress(UpstreamMisconfigured):
                await self.of(repository_id, route).try_connection()

        await gatherResults([Deferred.fromCoroutine(attempt(each)) for each in routes])

    async def close(self) -> None:
        """Abort all requests, and return when the connections have ended."""
        await gatherResults([Deferred.fromCoroutine(each.close()) for each in list(self._all)])
        self._recent.clear()

    def _make(self, repository_id: int, route: Route) -> Upstream:
        on_traffic: Callable[[int, float], None] = partial(self._on_traffic, repository_id)
        place = (repository_id, route.name)
        self._unusable.pop(place, None)
        try:
            authorization = self._authorize(route)
            on_health: Callable[[str | None], None] = partial(self._on_health, repository_id, route.name)
            if repository_id == UNSAVED:
                on_traffic, on_health = _forget, _forget
            ways = self._ways(route)
            made = Upstream(repository_id, route, authorization, self._shared, ways, on_traffic, on_health)
        except (Invalid, UpstreamMisconfigured) as error:
            reason = "its certificates cannot be used; the log of the server has the reason"
            if isinstance(error, UpstreamMisconfigured):
                reason = error.reason
            else:
                log.warn("upstream {route} cannot be used: {error}", route=route.name, error=str(error))
            self._unusable[place] = (route, reason)
            if len(self._unusable) > MOST_UPSTREAMS:
                del self._unusable[next(iter(self._unusable))]
            raise UpstreamMisconfigured(route.name, reason) from None
        self._all.add(made)
        return made

    def _ways(self, route: Route) -> Ways:
        policy = self._policy
        if route.ca_file is not None:
            policy = make_policy([*self._server_ca_files, route.ca_file])
        return Ways(
            reactor=self._reactor,
            guard=self._guard,
            proxies=self._proxies,
            policy=policy,
            connect_s=self._settings.connect_timeout_s if route.connect_timeout_s is None else route.connect_timeout_s,
            answer_s=self._settings.idle_timeout_s if route.idle_timeout_s is None else route.idle_timeout_s,
            connect_setting=_setting("connect_timeout", route.connect_timeout_s),
            answer_setting=_setting("idle_timeout", route.idle_timeout_s),
        )

    @cached_property
    def _proxies(self) -> ProxyChoice:
        return ProxyChoice(self._settings.proxies)

    @cached_property
    def _policy(self) -> IPolicyForHTTPS:
        return make_policy(self._server_ca_files)

    @property
    def _server_ca_files(self) -> list[Any]:
        return [] if self._settings.ca_file is None else [self._settings.ca_file]


def _forget(*_: object) -> None:
    pass


def _setting(name: str, of_route: float | None) -> str:
    return f"proxy.{name}" if of_route is None else f"{name} of the route"
