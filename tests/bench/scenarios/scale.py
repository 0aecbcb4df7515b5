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
from typing import Final

from tests.bench.arena import RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import LoadFailed, first_bytes, get, percentile, post_all
from tests.bench.contestants.conda import PkgrepoChannel
from tests.bench.contestants.maven import PkgrepoMaven
from tests.bench.contestants.npm import PkgrepoNpm
from tests.bench.contestants.python import PkgrepoPython
from tests.bench.contestants.rubygems import PkgrepoGems
from tests.bench.contestants.server import Filled
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

Addresses = Callable[[Filled, random.Random], Sequence[str]]


def _python(server: Filled, order: random.Random) -> Sequence[str]:
    assert isinstance(server, PkgrepoPython)
    return [
        server.page_url(f"filler-{server.first + number}") for number in order.sample(range(server.releases), READS)
    ]


def _npm(server: Filled, order: random.Random) -> Sequence[str]:
    assert isinstance(server, PkgrepoNpm)
    return [server.package_url(f"filler-{number}") for number in order.sample(range(server.releases), READS)]


def _maven(server: Filled, order: random.Random) -> Sequence[str]:
    assert isinstance(server, PkgrepoMaven)
    group = f"{server.target.url}/{GROUP.replace('.', '/')}"
    numbers = order.sample(range(server.releases), READS)
    return [f"{group}/filler-{number}/maven-metadata.xml" for number in numbers]


def _gem(server: Filled, order: random.Random) -> Sequence[str]:
    assert isinstance(server, PkgrepoGems)
    numbers = order.sample(range(server.releases // VERSIONS), READS)
    return [f"{server.gems_url}/info/filler_{number}" for number in numbers]


def _conda(server: Filled, order: random.Random) -> Sequence[str]:
    assert isinstance(server, PkgrepoChannel)
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
                READ_P50.key: percentile(read, 50),
                READ_P99.key: percentile(read, 99),
                PUBLISH_P50.key: percentile(published, 50),
                PUBLISH_P99.key: percentile(published, 99),
                FIRST.key: searched[0],
                SEARCH_P50.key: percentile(searched[1:], 50),
                SEARCH_P99.key: percentile(searched[1:], 99),
                LIST_P50.key: percentile(listed, 50),
                LIST_P99.key: percentile(listed, 99),
                RSS.key: watch.cost.rss_after / MIB,
            }

        return trial

    return prepare


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
            cursor = _cursor(following.body)
            if not cursor:
                break
            page = f"{url}&sort={order}&cursor={cursor}"
    return pages


def _cursor(body: bytes) -> str | None:
    following: str | None = json.loads(body)["next"]
    return following


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
    _scenario("python", "simple pages", _python, publishes.wheel),
    _scenario("npm", "packuments", _npm, publishes.node_package),
    _scenario("maven", "maven-metadata.xml", _maven, publishes.jar),
    _scenario("gems", "/info of gems", _gem, publishes.gem),
    _scenario("conda", "shards", _conda, publishes.conda_package),
    _comparison(
        "scale-postgresql",
        "simple pages on PostgreSQL",
        [made.name for made in MULTIPLIED],
        _growing("python", _python, publishes.wheel),
    ),
)
