"""
Installs through proxies: cold, warm, and while the upstream is down; beside upstreams, hosted repositories and peers.

A cold round begins with a new, empty server, which has answered one request for another package before the clock runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from urllib.parse import urljoin

from tests.bench.arena import GROWTH, RATE, RSS, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.installs import Installed, Read, read_at_once
from tests.bench.clients.load import NPM, PIP, LoadFailed, download, get, percentile, wrk
from tests.bench.contestants.proxy import Direct, Proxy, Sent, Source
from tests.bench.measure import MIB, Watch
from tests.bench.upstream import HUGE_PACKAGE, LARGE_PACKAGE, WARM_UP, file_mib, large_wheel

from .figures import BESIDE_MAX, BESIDE_P99, QUIET_P99, READ, SECONDS, ask, disturbed, figures, of_hits, probed
from .npm import PROBES_PER_S
from .proxied_loads import (
    GEM_LOAD,
    IMAGE_LOAD,
    LINE_LOAD,
    MAVEN_LOAD,
    NPM_LOAD,
    PIP_LOAD,
    REAL_NPM_LOAD,
    REAL_PIP_LOAD,
    REAL_UV_LOAD,
    SILENT_LOAD,
    UV_LOAD,
    Load,
)

CPU_MS = Metric("cpu_ms", "CPU ms")
ASKED = Metric("asked", "requests upstream", compared=False)
FETCHED = Metric("fetched", "MB from upstream", 1, compared=False)
SHARE = Metric("share", "upstream bytes / size", 2, compared=False)
FIRST = Metric("first_ms", "last first byte, ms", 1)
FAILED = Metric("failed", "failed", compared=False)

READERS = 50
UNPACKERS = 20
WARM_INSTALLS = 5  # in a round; more if they are fast
FEW = 2  # connections for the large packument
SLOWEST_S = 8.0  # seconds in which even slow proxies answer some of their requests
NO_CACHE = {"Cache-Control": "no-cache"}  # asks proxies to revalidate


def _through(load: Load, measure: Callable[[Source, Direct], Mapping[str, float]]) -> Callable[[Arena, str], Trial]:
    """Prepare rounds with an empty proxy and its upstream; directly, they are the same every time."""

    def prepare(arena: Arena, name: str) -> Trial:
        if name == load.direct:
            direct = arena.get(name, Direct)
            return lambda _: measure(direct, direct)

        def trial(_: int) -> Mapping[str, float]:
            with arena.fresh(name, Proxy) as server:
                load.first(server)
                return measure(server, server.upstream)

        return trial

    return prepare


def _cold(load: Load) -> Callable[[Arena, str], Trial]:
    """Prepare installs through an empty proxy."""

    def measure(server: Source, upstream: Direct) -> Mapping[str, float]:
        before = upstream.sent()
        with Watch(server.tree) as watch:
            installed = _all_of(load.install(server, {}))
        sent = _since(before, upstream.sent())
        found = {SECONDS.key: installed.seconds, ASKED.key: sent.requests, FETCHED.key: sent.bytes / 1e6}
        return {**figures(watch), **found}

    return _through(load, measure)


def _warm(load: Load) -> Callable[[Arena, str], Trial]:
    """Prepare installs of what a proxy has in its cache, or a repository hosts."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name)
        fill = load.fill if name == load.hosted else lambda server, _: _all_of(load.install(server, {}))
        arena.once((name, load.name), lambda: fill(server, arena.cache))
        load.install(server, {})

        def trial(_: int) -> Mapping[str, float]:
            took_s: list[float] = []
            with Watch(server.tree) as watch:
                while len(took_s) < WARM_INSTALLS or sum(took_s) < arena.seconds:
                    took_s.append(_all_of(load.install(server, {})).seconds)
            return {**figures(watch, count=len(took_s)), SECONDS.key: percentile(took_s, 50)}

        return trial

    return prepare


def _down(load: Load) -> Callable[[Arena, str], Trial]:
    """Prepare installs of what is in the cache of a proxy whose upstream is down, by clients that want it fresh."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name, Proxy)
        _all_of(load.install(server, {}))
        server.cut()

        def trial(_: int) -> Mapping[str, float]:
            installed = load.install(server, NO_CACHE)
            return {SECONDS.key: installed.seconds, FAILED.key: installed.failed}

        return trial

    return prepare


def _many(server: Source, upstream: Direct) -> Mapping[str, float]:
    """The figures of many clients that ask for one large file at once, which a proxy does not have yet."""
    wheel = large_wheel(file_mib(Source.mib))
    page_url = server.page_url(wheel.project)
    page = json.loads(get(page_url, {**PIP, "Accept-Encoding": "identity"}).body)
    url = urljoin(page_url, page["files"][0]["url"]).partition("#")[0]
    before = upstream.sent()
    with Watch(server.tree) as watch:
        reads = read_at_once(url, READERS)
    _check_sizes(url, reads, wheel.size)
    return {
        **figures(watch),
        FIRST.key: max(each.first_s for each in reads) * 1e3,
        SECONDS.key: max(each.seconds for each in reads),
        SHARE.key: _since(before, upstream.sent()).bytes / wheel.size,
    }


def _check_sizes(url: str, reads: Sequence[Read], size: int) -> None:
    if {each.size for each in reads} != {size}:
        raise LoadFailed(f"{url}: not all readers got {size} bytes")


@measuring(
    *("proxy-packument", (NPM_LOAD.ours, *NPM_LOAD.peers), READ, "proxies"),
    Goal(RATE, "at least", 50, NPM_LOAD.peers[0]),
)
def packument(arena: Arena, name: str) -> Trial:
    """Packument of 5,000 versions (10 MB) in the cache, as npm installs from it."""
    server = arena.get(name, Proxy)
    url = f"{server.place('npm')}/{LARGE_PACKAGE}"
    ask(url, NPM)

    def trial(_: int) -> Mapping[str, float]:
        with Watch(server.tree) as watch:
            hits = wrk(url, NPM, max(arena.seconds, SLOWEST_S), connections=FEW)
        return {**of_hits(watch, hits), RSS.key: watch.cost.rss_after / MIB}

    return trial


_HUGE = ("pkgrepo-huge-proxy", "verdaccio-huge-proxy")
_SOON = Goal(BESIDE_P99, "at most", 50)


@measuring("proxy-beside", _HUGE, (BESIDE_P99, BESIDE_MAX, QUIET_P99, SECONDS, GROWTH), "proxies", _SOON)
def beside(arena: Arena, name: str) -> Trial:
    """Small packument asked for 200 times a second, while one of 95 MB is fetched and parsed."""

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, Proxy) as server:
            NPM_LOAD.first(server)
            return _beside_huge(server, arena, lambda url: download(url, NPM))

    return trial


@measuring("proxy-unpacked", _HUGE, (BESIDE_P99, BESIDE_MAX, QUIET_P99, SECONDS, CPU_MS, GROWTH), "proxies", _SOON)
def unpacked(arena: Arena, name: str) -> Trial:
    """Small packument asked for 200 times a second, while 20 clients read one of 95 MB without gzip."""
    server = arena.get(name, Proxy)
    NPM_LOAD.first(server)
    size = download(f"{server.place('npm')}/{HUGE_PACKAGE}")
    return lambda _: _beside_huge(server, arena, lambda url: _check_sizes(url, read_at_once(url, UNPACKERS), size))


def _beside_huge(server: Proxy, arena: Arena, read: Callable[[str], object]) -> Mapping[str, float]:
    """The figures of a read of the huge packument, and of requests for a small one that is in the cache."""
    probe = partial(probed, f"{server.place('npm')}/{WARM_UP}", NPM, PROBES_PER_S)
    return disturbed(server, probe, arena.seconds, partial(read, f"{server.place('npm')}/{HUGE_PACKAGE}"))


def _all_of(installed: Installed) -> Installed:
    if installed.failed:
        raise LoadFailed(f"{installed.failed} requests failed")
    return installed


def _since(before: Sent, now: Sent) -> Sent:
    return Sent(now.requests - before.requests, now.bytes - before.bytes)


def _cold_scenario(load: Load) -> Scenario:
    return Scenario(
        *(f"proxy-{load.name}-cold", f"{load.about}; nothing in the cache", (load.ours, load.direct, *load.peers)),
        *((SECONDS, CPU_MS, GROWTH, ASKED, FETCHED), _cold(load), "proxies"),
        (Goal(SECONDS, "at most", 1.1, load.direct),),
    )


def _scenarios(load: Load) -> Sequence[Scenario]:
    warm = (
        f"proxy-{load.name}-warm",
        f"{load.about}; all in the cache, or hosted",
        (load.ours, load.hosted, *load.peers),
    )
    down = f"proxy-{load.name}-down", f"{load.about}; all in the cache, upstream down", (load.ours, *load.peers)
    as_fast = Goal(SECONDS, "at most", 1 / 0.95, load.hosted)
    return (
        _cold_scenario(load),
        Scenario(*warm, (SECONDS, CPU_MS, GROWTH), _warm(load), "proxies", (as_fast,)),
        Scenario(*down, (SECONDS, FAILED), _down(load), f"proxies-{load.name}-down", (Goal(FAILED, "at most", 0),)),
    )


# What rules cost that look into each file, and into that of the version before it.
RULES = Scenario(
    *("proxy-npm-rules-cold", f"{NPM_LOAD.about}; nothing in the cache", ("pkgrepo-npm-ruled-proxy", NPM_LOAD.ours)),
    *((SECONDS, CPU_MS, GROWTH, ASKED, FETCHED), _cold(NPM_LOAD), "proxies-rules"),
    (Goal(SECONDS, "at most", 1.3, NPM_LOAD.ours),),
)


SCENARIOS: tuple[Scenario, ...] = (
    *(
        scenario
        for load in (NPM_LOAD, PIP_LOAD, UV_LOAD, IMAGE_LOAD, MAVEN_LOAD, GEM_LOAD)
        for scenario in _scenarios(load)
    ),
    RULES,
    *map(_cold_scenario, (REAL_NPM_LOAD, REAL_PIP_LOAD, REAL_UV_LOAD, LINE_LOAD, SILENT_LOAD)),
    Scenario(
        *(
            "proxy-many",
            f"{READERS} clients at once, one wheel of 200 MiB (or a fifth of --mib) that is not in the cache",
        ),
        *((PIP_LOAD.ours, PIP_LOAD.direct, *PIP_LOAD.peers), (FIRST, SECONDS, CPU_MS, GROWTH, SHARE)),
        *(_through(PIP_LOAD, _many), "proxies"),
        (Goal(SHARE, "at most", 1.01), Goal(FIRST, "at most", 1.2, PIP_LOAD.direct)),
    ),
    *(packument, beside, unpacked),
)
