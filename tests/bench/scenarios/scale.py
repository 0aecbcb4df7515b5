"""
Growth: the same work in catalogs of 1,000 releases and of up to a million.

Reads are of packages that the server, which has just started, has not read before. Start is from the command until the
first answer.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.bench.arena import RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import LoadFailed, first_bytes, get, percentile, post_all
from tests.bench.contestants.pkgrepo import Filled, PkgrepoChannel
from tests.bench.contestants.sizes import MULTIPLIED, SIZES, scaled_name
from tests.bench.measure import MIB, Watch
from tests.bench.packages.filler import VERSIONS
from tests.bench.packages.modules import GROUP

from . import publishes
from .conda import shard_urls

START: Final = Metric("start_s", "start s", 2)
READ_P50, READ_P99 = Metric("read_p50_ms", "read p50 ms", 2), Metric("read_p99_ms", "p99", 2)
PUBLISH_P50, PUBLISH_P99 = Metric("publish_p50_ms", "publish p50 ms", 2), Metric("publish_p99_ms", "p99", 2)
FIRST: Final = Metric("first_search_ms", "first search ms", 0)
SEARCH_P50, SEARCH_P99 = Metric("search_p50_ms", "search p50 ms", 2), Metric("search_p99_ms", "p99", 2)
LIST_P50, LIST_P99 = Metric("list_p50_ms", "list p50 ms", 2), Metric("list_p99_ms", "p99", 2)
READS: Final = 100  # in a round, of as many packages
PUBLISHES: Final = 100
SEARCHES: Final = 50
PAGE: Final = 100  # packages on a page of a list

Addresses = Callable[[Any, random.Random], Sequence[str]]


def _each(address: Callable[[Any, int], str], versions: int = 1) -> Addresses:
    """Some packages, of which each has so many of the releases, by their number."""

    def addresses(server: Filled, order: random.Random) -> Sequence[str]:
        return [address(server, number) for number in order.sample(range(server.releases // versions), READS)]

    return addresses


_MODULES = GROUP.replace(".", "/")
_PYTHON = _each(lambda server, number: server.page_url(f"filler-{server.first + number}"))
_NPM = _each(lambda server, number: server.package_url(f"filler-{number}"))
_MAVEN = _each(lambda server, number: f"{server.place('maven')}/{_MODULES}/filler-{number}/maven-metadata.xml")
_GEMS = _each(lambda server, number: f"{server.place('gems')}/info/filler_{number}", VERSIONS)


def _conda(server: PkgrepoChannel, order: random.Random) -> Sequence[str]:
    return order.sample(shard_urls(server), READS)


def _growing(kind: str, addresses: Addresses, make: publishes.Make) -> Callable[[Arena, str], Trial]:
    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name, Filled)
        order = random.Random(5)

        def trial(number: int) -> Mapping[str, float]:
            server.stop()
            started = time.perf_counter()
            server.start()
            first_bytes([f"{server.base_url}/readyz"], {})
            start_s = time.perf_counter() - started
            admin = server.admin
            urls = addresses(server, order)
            with Watch(server.tree) as watch:
                read = first_bytes(urls, {})
                published = post_all(
                    publishes.target_of(server, kind),
                    [make(server, f"bench-grown-{number}-{each}")[0] for each in range(PUBLISHES)],
                    1,
                )
                searched = first_bytes(_searches(server), admin)
                listed = first_bytes(_pages(server, admin), admin)
            return {
                START.key: start_s,
                FIRST.key: searched[0],
                RSS.key: watch.cost.rss_after / MIB,
                **_percentiles("read", read),
                **_percentiles("publish", published),
                **_percentiles("search", searched[1:]),
                **_percentiles("list", listed),
            }

        return trial

    return prepare


def _percentiles(what: str, took_ms: Sequence[float]) -> Mapping[str, float]:
    return {f"{what}_p{percent}_ms": percentile(took_ms, percent) for percent in (50, 99)}


def _searches(server: Filled) -> list[str]:
    words = [f"filler {server.first + number * 7919 % server.releases}" for number in range(SEARCHES)]
    return [f"{server.base_url}/api/search/packages?q={word.replace(' ', '+')}&limit=20" for word in words]


def _pages(server: Filled, admin: Mapping[str, str]) -> list[str]:
    """The pages of the list of packages that follow one another, by name and by time of change."""
    url = f"{server.base_url}/api/repository/{server.storage}%2F{server.repository}/packages?limit={PAGE}"
    pages = []
    for order in ("name", "-updated_at"):
        page = f"{url}&sort={order}"
        for _ in range(SEARCHES // 2):
            pages.append(page)
            following = get(page, admin)
            if following.status != 200:
                raise LoadFailed(f"GET {page}: {following.status} {following.body[:200]!r}")
            cursor = json.loads(following.body)["next"]
            if not cursor:
                break
            page = f"{url}&sort={order}&cursor={cursor}"
    return pages


def _scenario(kind: str, what: str, addresses: Addresses, make: publishes.Make) -> Scenario:
    names = [scaled_name(kind, size) for size in SIZES]
    return _comparison(f"scale-{kind}", what, names, _growing(kind, addresses, make))


def _comparison(name: str, what: str, names: Sequence[str], prepare: Callable[[Arena, str], Trial]) -> Scenario:
    return Scenario(
        name=name,
        about=f"{what}: start, reads, publishes, searches and lists, by how many releases there are",
        lineup=tuple(names),
        metrics=(
            *(READ_P50, READ_P99, PUBLISH_P50, PUBLISH_P99, SEARCH_P50, SEARCH_P99, LIST_P50, LIST_P99),
            *(FIRST, START, RSS),
        ),
        prepare=prepare,
        stock=name,
        goals=(
            Goal(READ_P50, "at most", 1.3, names[-1]),
            Goal(PUBLISH_P50, "at most", 1.3, names[-1]),
            Goal(START, "at most", 3),
        ),
    )


SCENARIOS: tuple[Scenario, ...] = (
    _scenario("python", "simple pages", _PYTHON, publishes.wheel),
    _scenario("npm", "packuments", _NPM, publishes.node_package),
    _scenario("maven", "maven-metadata.xml", _MAVEN, publishes.jar),
    _scenario("gems", "/info of gems", _GEMS, publishes.gem),
    _scenario("conda", "shards", _conda, publishes.conda_package),
    _comparison(
        "scale-postgresql",
        "simple pages on PostgreSQL",
        [made.name for made in MULTIPLIED],
        _growing("python", _PYTHON, publishes.wheel),
    ),
)
