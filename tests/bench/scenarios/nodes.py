"""
Nodes on PostgreSQL and a bucket, beside one server on SQLite and a folder, and beside distribution with its S3 driver.

Where there are two nodes, what is published at the first is read at the second, and clients publish at both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from attrs import evolve

from tests.bench.arena import GROWTH, P50, P99, RATE, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import NPM, first_bytes, percentile, post_all
from tests.bench.contestants.container import Distribution, Distribution3, PkgrepoImages
from tests.bench.contestants.maven import PkgrepoMaven
from tests.bench.contestants.nodes import NODE_IMAGES, NODE_NPM, NODES_MAVEN, NODES_NPM, NODES_PYTHON, RIVALS, TwoNodes
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.contestants.python import PkgrepoPython
from tests.bench.contestants.server import Contestant
from tests.bench.measure import Watch

from .container import CPU_MS as BLOB_CPU
from .container import LARGE, pull, push
from .figures import READ, SPEED, figures, sending
from .publishes import CLIENTS, COUNT, CPU_MS, PUBLISHES, Make, check_published, jar, node_package, target_of, wheel
from .workers import packument

MISSES = 200  # in a round
ALONE = 40  # publishes by one client
P50_ALONE = Metric("alone_ms", "p50 ms, one client", 2)


@measuring("nodes-read", (NODE_NPM, PkgrepoNpm.name), READ, "nodes-read", Goal(RATE, "at least", 0.95, PkgrepoNpm.name))
def read(arena: Arena, name: str) -> Trial:
    """Packument of 5 versions, by a node; by one server on SQLite and a folder."""
    return packument(arena, name)


@measuring("nodes-miss", (NODES_NPM, PkgrepoNpm.name), (RATE, CPU_MS, P50, P99), "nodes-miss", Goal(P50, "at most", 2))
def miss(arena: Arena, name: str) -> Trial:
    """First read of a packument that another node has published, one after the other; of one server's own."""
    server = arena.get(name, NodeRegistry)

    def make(number: int) -> Sequence[str]:
        made = [node_package(server, f"bench-miss-{number}-{each}") for each in range(MISSES)]
        post_all(target_of(server, "npm"), [post for post, _ in made], CLIENTS)
        return [_elsewhere(server, url) for _, url in made]

    return sending(server, make, lambda urls: first_bytes(urls, NPM))


def _publishing(kind: str, make: Make) -> Callable[[Arena, str], Trial]:
    """Prepare rounds of publishes by eight clients, of whom half use the other node, and by one."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name)
        target = target_of(server, kind)
        targets = [target, evolve(target, url=_elsewhere(server, target.url))]
        for number, each in enumerate(targets):
            post_all(each, [make(server, f"bench-warm-{kind}-{number}")[0]], 1)

        def trial(number: int) -> Mapping[str, float]:
            made = [make(server, f"bench-{kind}-{number}-{each}") for each in range(COUNT + ALONE)]
            posts = [post for post, _ in made]

            def publish(half: int) -> list[float]:
                return post_all(targets[half], posts[half:-ALONE:2], CLIENTS // 2)

            with Watch(server.tree) as watch, ThreadPoolExecutor(2) as pool:
                took_ms = [took for times in pool.map(publish, range(2)) for took in times]
            alone_ms = post_all(target, posts[-ALONE:], 1)
            check_published(server, kind, _elsewhere(server, made[-1][1]))
            return {**figures(watch, took_ms), P50_ALONE.key: percentile(alone_ms, 50)}

        return trial

    return prepare


def _elsewhere(server: Contestant, url: str) -> str:
    """The same address at the other node, if there is one."""
    return url.replace(server.base_url, server.other_url, 1) if isinstance(server, TwoNodes) else url


def _publishes(kind: str, what: str, make: Make, nodes: str, alone: str) -> Scenario:
    return Scenario(
        name=f"nodes-publish-{kind}",
        about=f"publishes of {what}, by {CLIENTS} clients at two nodes; at two workers on SQLite and a folder",
        lineup=(nodes, f"{alone}-2"),
        metrics=(PUBLISHES, CPU_MS, P50, P99, P50_ALONE, GROWTH),
        prepare=_publishing(kind, make),
        stock=f"nodes-publish-{kind}",
        goals=(Goal(PUBLISHES, "at least", 300), Goal(P50_ALONE, "at most", 10)),
    )


_STORED = (NODE_IMAGES, *RIVALS, PkgrepoImages.name, Distribution.name, Distribution3.name)
_OF_BLOBS = (SPEED, BLOB_CPU, GROWTH)
_GOALS = (*(Goal(SPEED, "at least", 0.9, each) for each in RIVALS), Goal(GROWTH, "at most", 64))
_PUSH = "push of a blob of 1 GiB into a bucket; into a folder"
_PULL = "blob of 1 GiB from a bucket, read by curl; from a folder"

SCENARIOS: tuple[Scenario, ...] = (
    *(read, miss),
    _publishes("npm", "npm packages of 9 KB", node_package, NODES_NPM, PkgrepoNpm.name),
    _publishes("python", "wheels of 9 KB", wheel, NODES_PYTHON, PkgrepoPython.name),
    _publishes("maven", "jars of 9 KB", jar, NODES_MAVEN, PkgrepoMaven.name),
    Scenario("nodes-push-1g", _PUSH, _STORED, _OF_BLOBS, push((LARGE,)), "none", _GOALS),
    Scenario("nodes-pull-1g", _PULL, _STORED, _OF_BLOBS, pull, "nodes-pull", _GOALS),
)
