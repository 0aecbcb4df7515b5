"""Checks of upstreams: each route is asked now, over a new connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from attrs import frozen
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import PkgrepoError, UpstreamFailed
from pkgrepo.model import ReadLimits, Repository, RepositoryType
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.proxy.upstream.failures import DECISIONS
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route

LIMITS: Final = ReadLimits(2**63 - 1, 15.0)  # of one probe; the body is not read
Probe = tuple[str, Sequence[int]]
Authorize = Callable[[Upstream, Place, str | None], Awaitable[None]]


@frozen
class RouteCheck:
    """
    What a route said. ``sentence`` is for people, and has no addresses.

    ``status`` is the status code of the last response, None without any. ``latency_ms`` is the time until its head,
    with that of looking up the name, connecting and the TLS handshake.
    """

    route: Route
    ok: bool
    sentence: str
    status: int | None = None
    latency_ms: int | None = None


async def check_routes(
    upstreams: Upstreams,
    repository: Repository,
    probes: Callable[[str], Sequence[Probe]],
    authorize: Authorize | None = None,
) -> list[RouteCheck]:
    """
    Ask all routes of a proxy at once, with ``probes`` for their URLs; in the order in which requests ask them.

    ``authorize`` is given the challenge of a 401 that a working upstream may answer, and raises ``UpstreamFailed``.
    """
    routes = proxy_config_of(repository).routes
    work = [_check(upstreams, repository, each, probes(each.url), authorize) for each in routes]
    found: list[RouteCheck] = await gatherResults([Deferred.fromCoroutine(each) for each in work])
    return found


def route_warnings(upstreams: Upstreams, repository: Repository) -> list[str]:
    """Warnings about the routes of a proxy that cannot be used before a setting is changed, as sentences."""
    if repository.type is not RepositoryType.PROXY:
        return []
    found = ((each.name, upstreams.fault(repository.id, each)) for each in proxy_config_of(repository).routes)
    return [f"Upstream {name!r} cannot be used: {fault}." for name, fault in found if fault is not None]


async def _check(
    upstreams: Upstreams, repository: Repository, route: Route, probes: Sequence[Probe], authorize: Authorize | None
) -> RouteCheck:
    try:
        async with upstreams.fresh(repository.id, route) as upstream:
            return await _probe(upstream, Place(repository.id, route), probes, authorize)
    except UpstreamFailed as error:
        return RouteCheck(route, ok=False, sentence=error.reason)
    except PkgrepoError as error:  # a file of certificates, or the stored credentials, cannot be used
        return RouteCheck(route, ok=False, sentence=str(error))


async def _probe(upstream: Upstream, place: Place, probes: Sequence[Probe], authorize: Authorize | None) -> RouteCheck:
    """The first probe that the upstream answers as it should, else the last one."""
    route = place.route
    assert probes, "a format has at least one probe"
    for url, statuses in probes:
        async with upstream.open("GET", url, limits=LIMITS, accept=(401, *DECISIONS)) as response:
            status, challenge = response.status, response.headers.get("WWW-Authenticate")
        if status in statuses:
            if status == 401 and authorize is not None:
                await authorize(upstream, place, challenge)
            return RouteCheck(route, True, "it answers", status, _latency_ms(upstream))
        if status == 401 or status in DECISIONS:
            wanted = "credentials" if route.credentials is None else "other credentials"
            sentence = f"it answers {status}: it wants {wanted}"
            return RouteCheck(route, False, sentence, status, _latency_ms(upstream))
    sentence = f"it answers {status}; the URL of the route may be wrong"
    return RouteCheck(route, False, sentence, status, _latency_ms(upstream))


def _latency_ms(upstream: Upstream) -> int | None:
    latency_s = upstream.health().latency_s
    return None if latency_s is None else round(latency_s * 1000)
