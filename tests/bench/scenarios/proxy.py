"""
Installs through proxies: cold, warm, and while the upstream is down; beside upstreams, hosted repositories and peers.

A cold round begins with a new, empty server, which has answered one request for another package before the clock runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urljoin

from tests.bench.arena import CPU, GROWTH, P50, P99, RATE, RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.installs import Installed, Read, read_at_once
from tests.bench.clients.load import NPM, PIP, LoadFailed, download, get, percentile, wrk
from tests.bench.contestants.proxy import Direct, Proxy, Sent, Source
from tests.bench.measure import MIB, Watch
from tests.bench.upstream import HUGE_PACKAGE, LARGE_PACKAGE, WARM_UP, file_mib, large_wheel

from .figures import BESIDE_MAX, BESIDE_P99, QUIET_P99, READ, SECONDS, ask, figures, probed
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


def _cold(load: Load) -> Callable[[Arena, str], Trial]:
    """Prepare installs through an empty proxy; directly, they are the same every time."""

    def measure(server: Source, upstream: Direct) -> Mapping[str, float]:
        before = upstream.sent()
        with Watch(server.tree) as watch:
            installed = _all_of(load.install(server, {}))
        sent = _since(before, upstream.sent())
        return {
            **figures(watch),
            SECONDS.key: installed.seconds,
            ASKED.key: sent.requests,
            FETCHED.key: sent.bytes / 1e6,
        }

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


def _warm(load: Load) -> Callable[[Arena, str], Trial]:
    """Prepare installs of what a proxy has in its cache, or a repository hosts."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name)
        fill = load.fill if name == load.hosted else lambda _, server: _all_of(load.install(server, {}))
        arena.once((name, load.name), lambda: fill(arena, server))
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


def _many(arena: Arena, name: str) -> Trial:
    """Prepare many clients that ask for one large file at once, which a proxy does not have yet."""

    def measure(server: Source, upstream: Direct) -> Mapping[str, float]:
        wheel = large_wheel(file_mib(Source.mib))
        page_url = server.page_url(wheel.project)
        url = urljoin(
            page_url, json.loads(get(page_url, {**PIP, "Accept-Encoding": "identity"}).body)["files"][0]["url"]
        )
        before = upstream.sent()
        with Watch(server.tree) as watch:
            reads = read_at_once(url.partition("#")[0], READERS)
        if {each.size for each in reads} != {wheel.size}:
            raise LoadFailed(f"{url}: not all readers got {wheel.size} bytes")
        return {
            **figures(watch),
            FIRST.key: max(each.first_s for each in reads) * 1e3,
            SECONDS.key: max(each.seconds for each in reads),
            SHARE.key: _since(before, upstream.sent()).bytes / wheel.size,
        }

    if name == PIP_LOAD.direct:
        server = arena.get(name, Direct)
        return lambda _: measure(server, server)

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, Proxy) as server:
            PIP_LOAD.first(server)
            return measure(server, server.upstream)

    return trial


def _packument(arena: Arena, name: str) -> Trial:
    server = arena.get(name, Proxy)
    url = f"{server.registry_url}/{LARGE_PACKAGE}"
    ask(url, NPM)

    def trial(_: int) -> Mapping[str, float]:
        with Watch(server.tree) as watch:
            hits = wrk(url, NPM, max(arena.seconds, SLOWEST_S), connections=FEW)
        return {
            RATE.key: hits.requests / hits.seconds,
            CPU.key: watch.cost.cpu_s * 1e6 / hits.requests,
            P50.key: hits.p50_ms,
            P99.key: hits.p99_ms,
            RSS.key: watch.cost.rss_after / MIB,
        }

    return trial


def _beside(arena: Arena, name: str) -> Trial:
    """Prepare the fetch of a packument of 95 MB, and requests for another one that is in the cache."""

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, Proxy) as server:
            NPM_LOAD.first(server)
            probed = f"{server.registry_url}/{WARM_UP}"
            quiet = _probed(probed, lambda: time.sleep(arena.seconds))
            with Watch(server.tree) as watch:
                beside = _probed(probed, lambda: download(f"{server.registry_url}/{HUGE_PACKAGE}", NPM))
        return figures(watch, beside=beside, quiet=quiet)

    return trial


def _unpacked(arena: Arena, name: str) -> Trial:
    """Prepare clients that read a cached packument of 95 MB uncompressed, and requests for another one."""
    server = arena.get(name, Proxy)
    NPM_LOAD.first(server)
    url, probed = f"{server.registry_url}/{HUGE_PACKAGE}", f"{server.registry_url}/{WARM_UP}"
    size = download(url)

    def trial(_: int) -> Mapping[str, float]:
        reads: list[Read] = []
        quiet = _probed(probed, lambda: time.sleep(arena.seconds))
        with Watch(server.tree) as watch:
            beside = _probed(probed, lambda: reads.extend(read_at_once(url, UNPACKERS)))
        if {each.size for each in reads} != {size}:
            raise LoadFailed(f"{url}: not all readers got {size} bytes")
        return figures(watch, beside=beside, quiet=quiet)

    return trial


def _probed(url: str, work: Callable[[], object]) -> list[float]:
    return probed(url, NPM, PROBES_PER_S, work)


def _all_of(installed: Installed) -> Installed:
    if installed.failed:
        raise LoadFailed(f"{installed.failed} requests failed")
    return installed


def _since(before: Sent, now: Sent) -> Sent:
    return Sent(now.requests - before.requests, now.bytes - before.bytes)


def _cold_scenario(load: Load) -> Scenario:
    return Scenario(
        name=f"proxy-{load.name}-cold",
        about=f"{load.about}; nothing in the cache",
        lineup=(load.ours, load.direct, *load.peers),
        metrics=(SECONDS, CPU_MS, GROWTH, ASKED, FETCHED),
        prepare=_cold(load),
        stock="proxies",
        goals=(Goal(SECONDS, "at most", 1.1, load.direct),),
    )


def _scenarios(load: Load) -> Sequence[Scenario]:
    return (
        _cold_scenario(load),
        Scenario(
            name=f"proxy-{load.name}-warm",
            about=f"{load.about}; all in the cache, or hosted",
            lineup=(load.ours, load.hosted, *load.peers),
            metrics=(SECONDS, CPU_MS, GROWTH),
            prepare=_warm(load),
            stock="proxies",
            goals=(Goal(SECONDS, "at most", 1 / 0.95, load.hosted),),
        ),
        Scenario(
            name=f"proxy-{load.name}-down",
            about=f"{load.about}; all in the cache, upstream down",
            lineup=(load.ours, *load.peers),
            metrics=(SECONDS, FAILED),
            prepare=_down(load),
            stock=f"proxies-{load.name}-down",
            goals=(Goal(FAILED, "at most", 0),),
        ),
    )


SCENARIOS: tuple[Scenario, ...] = (
    *(
        scenario
        for load in (NPM_LOAD, PIP_LOAD, UV_LOAD, IMAGE_LOAD, MAVEN_LOAD, GEM_LOAD)
        for scenario in _scenarios(load)
    ),
    *map(_cold_scenario, (REAL_NPM_LOAD, REAL_PIP_LOAD, REAL_UV_LOAD, LINE_LOAD, SILENT_LOAD)),
    Scenario(
        name="proxy-many",
        about=f"{READERS} clients at once, one wheel of 200 MiB (or a fifth of --mib) that is not in the cache",
        lineup=(PIP_LOAD.ours, PIP_LOAD.direct, *PIP_LOAD.peers),
        metrics=(FIRST, SECONDS, CPU_MS, GROWTH, SHARE),
        prepare=_many,
        stock="proxies",
        goals=(Goal(SHARE, "at most", 1.01), Goal(FIRST, "at most", 1.2, PIP_LOAD.direct)),
    ),
    Scenario(
        name="proxy-packument",
        about="packument of 5,000 versions (10 MB) in the cache, as npm installs from it",
        lineup=(NPM_LOAD.ours, *NPM_LOAD.peers),
        metrics=READ,
        prepare=_packument,
        stock="proxies",
        goals=(Goal(RATE, "at least", 50, NPM_LOAD.peers[0]),),
    ),
    Scenario(
        name="proxy-beside",
        about="small packument asked for 200 times a second, while one of 95 MB is fetched and parsed",
        lineup=("pkgrepo-huge-proxy", "verdaccio-huge-proxy"),
        metrics=(BESIDE_P99, BESIDE_MAX, QUIET_P99, SECONDS, GROWTH),
        prepare=_beside,
        stock="proxies",
        goals=(Goal(BESIDE_P99, "at most", 50),),
    ),
    Scenario(
        name="proxy-unpacked",
        about=f"small packument asked for 200 times a second, while {UNPACKERS} clients read one of 95 MB without gzip",
        lineup=("pkgrepo-huge-proxy", "verdaccio-huge-proxy"),
        metrics=(BESIDE_P99, BESIDE_MAX, QUIET_P99, SECONDS, CPU_MS, GROWTH),
        prepare=_unpacked,
        stock="proxies",
        goals=(Goal(BESIDE_P99, "at most", 50),),
    ),
)
