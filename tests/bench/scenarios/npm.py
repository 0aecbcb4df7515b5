"""Node packages: reads and publishes as npm makes them, beside another registry and beside nginx."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import frozen

from tests.bench.arena import GROWTH, P50, P99, RATE, Arena, Goal, Scenario, Trial, measuring
from tests.bench.clients.load import NPM, LoadFailed, Post, Target, first_bytes, get, percentile, post_all, put_file
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.measure import MIB, Watch
from tests.bench.packages.tarballs import NodePackage

from .figures import (
    BESIDE_MAX,
    BESIDE_P99,
    QUIET_MAX,
    READ,
    SECONDS,
    SPEED,
    UPLOADS,
    figures,
    mirrored,
    probed,
    reading,
    sending,
)
from .python import CPU_MS

OURS = PkgrepoNpm.name
PEER = "verdaccio"
PEER_JWT = "verdaccio-jwt"
NORA = "nora"
PEERS = (OURS, "nginx", PEER, NORA)
WHOLE = {**NPM, "Accept": "application/json"}
_PLAIN = {"Accept-Encoding": "identity"}

PUBLISHES = 40  # in a round of sequential publishes
BESIDE = 200  # in a round that measures their effect on other requests
AT_ONCE = 32
FIRST_BYTES = 50  # in a round
PROBES_PER_S = 200.0


@frozen
class Stock:
    """A package with so many versions that a server has before it is measured."""

    name: str
    count: int

    def put_into(self, arena: Arena, name: str) -> NodeRegistry:
        """Return a running contestant that has this package."""
        contestant = arena.get(name, NodeRegistry)
        arena.once((name, self), lambda: contestant.fill(self.name, self.count))
        return contestant


SMALL = Stock("bench-small", 5)
MIDDLE = Stock("bench-300", 300)
LARGE = Stock("bench-5000", 5000)

Address = Callable[[NodeRegistry, Stock], str]


def _document(server: NodeRegistry, stock: Stock) -> str:
    return server.package_url(stock.name)


def _tarball(server: NodeRegistry, stock: Stock) -> str:
    return server.tarball_url(NodePackage(stock.name, "1.0.0"))


def _reading(
    stock: Stock, headers: Mapping[str, str], address: Address = _document, *, revalidate: Literal["no", "must"] = "no"
) -> Callable[[Arena, str], Trial]:
    """Prepare one address to be asked for again and again."""

    def prepare(arena: Arena, name: str) -> Trial:
        url = address(stock.put_into(arena, arena.source(name, PEERS)), stock)
        return reading(arena, name, url, headers, revalidate=revalidate)

    return prepare


def _publishing(arena: Arena, name: str, stock: Stock, clients: int, count: int) -> Trial:
    """Rounds of ``count`` publishes of small versions, by so many clients, into a package that has others."""
    server = stock.put_into(arena, name)

    def make(_: int) -> tuple[int, Sequence[Post]]:
        posts = [each.post(server.place("npm")) for each in server.further(stock.name, count)]
        return server.count(stock.name) + count, posts

    def check(made: tuple[int, Sequence[Post]]) -> None:
        if server.count(stock.name) != made[0]:
            raise LoadFailed(f"{name} has lost versions of {stock.name}")

    return sending(server, make, lambda made: post_all(server.publish_target(stock.name), made[1], clients), check)


def _read(name: str, about: str, prepare: Callable[[Arena, str], Trial], *goals: Goal) -> Scenario:
    return Scenario(name, about, PEERS, READ, prepare, "npm", goals)


_PUBLISH = (UPLOADS, CPU_MS, P50, P99, GROWTH)
_PUBLISHERS = (OURS, PEER, PEER_JWT, NORA)
_TWENTY = Goal(RATE, "at least", 20, PEER)
_FIVE = Goal(RATE, "at least", 5, PEER)

READS = (
    _read("npm-small", "packument of 5 versions, as npm installs from it", _reading(SMALL, NPM), _FIVE),
    _read("npm-304", "the same, unchanged (304)", _reading(SMALL, NPM, revalidate="must"), _FIVE),
    _read("npm-300", "packument of 300 versions, as npm installs from it", _reading(MIDDLE, NPM), _TWENTY),
    _read("npm-300-full", "the same in full", _reading(MIDDLE, WHOLE), _TWENTY),
    _read("npm-300-plain", "the same in full, not compressed", _reading(MIDDLE, {**WHOLE, **_PLAIN}), _TWENTY),
    _read("npm-tarball", "npm tarball of 9 KB", _reading(SMALL, NPM, _tarball)),
)


@measuring(
    "npm-publish-300", _PUBLISHERS, _PUBLISH, "npm", Goal(P50, "at most", 15), Goal(P50, "at most", 1 / 20, PEER)
)
def publish_300(arena: Arena, name: str) -> Trial:
    """Publish of a version of 9 KB into a package of 300, one after the other."""
    return _publishing(arena, name, MIDDLE, 1, PUBLISHES)


@measuring("npm-publish-32", _PUBLISHERS, _PUBLISH, "npm")
def publish_32(arena: Arena, name: str) -> Trial:
    """32 publishes into one package of 300 versions, all at once."""
    return _publishing(arena, name, MIDDLE, AT_ONCE, AT_ONCE)


@measuring(
    *("npm-publish-100m", (OURS, PEER, NORA), (SPEED, SECONDS, CPU_MS, GROWTH), "npm-large"),
    *(Goal(GROWTH, "at most", 48), Goal(SECONDS, "at most", 0.5, PEER)),
)
def publish_large(arena: Arena, name: str) -> Trial:
    """Publish of a version of 100 MiB."""
    server = SMALL.put_into(arena, name)

    def trial(number: int) -> Mapping[str, float]:
        package = NodePackage("bench-100m", f"1.0.{number}", 100 * MIB)
        path = arena.scratch / "publish.json"
        path.write_bytes(package.document(server.place("npm")))
        url = server.package_url(package.name)
        target = Target(url, {**server.target("npm").headers, "Content-Type": "application/json"})
        with Watch(server.tree) as watch:
            put_file(url, path, target)
        return figures(watch, size=100 * MIB)

    return trial


# Without Verdaccio, which takes hours to fill with 5,000 versions.
@measuring("npm-publish-5000", (OURS,), _PUBLISH, "npm-5000", Goal(P50, "at most", 40))
def publish_5000(arena: Arena, name: str) -> Trial:
    """Publish of a version of 9 KB into a package of 5,000, one after the other."""
    return _publishing(arena, name, LARGE, 1, PUBLISHES)


@measuring("npm-first-byte", (OURS, "nginx"), (P50, P99), "npm-5000", Goal(P50, "at most", 5))
def first_byte(arena: Arena, name: str) -> Trial:
    """First byte of a packument of 5,000 versions (10 MB), not compressed."""
    headers = {**WHOLE, **_PLAIN}
    url = mirrored(arena, name, _document(LARGE.put_into(arena, arena.source(name, PEERS)), LARGE), headers)
    first_bytes([url] * 2, headers)

    def trial(_: int) -> Mapping[str, float]:
        took_ms = first_bytes([url] * FIRST_BYTES, headers)
        return {P50.key: percentile(took_ms, 50), P99.key: percentile(took_ms, 99)}

    return trial


@measuring("npm-beside", (OURS,), (BESIDE_MAX, BESIDE_P99, QUIET_MAX), "npm-5000", Goal(BESIDE_MAX, "at most", 20))
def beside(arena: Arena, name: str) -> Trial:
    """Small packument asked for 200 times a second, while one of 5,000 versions is published into and read."""
    server = LARGE.put_into(arena, name)
    SMALL.put_into(arena, name)

    def trial(_: int) -> Mapping[str, float]:
        posts = [each.post(server.place("npm")) for each in server.further(LARGE.name, BESIDE)]
        reader = _Reader(server.package_url(LARGE.name))
        quiet = _probed(server, lambda: time.sleep(arena.seconds))
        reader.start()
        try:
            beside = _probed(server, lambda: post_all(server.publish_target(LARGE.name), posts, 1))
        finally:
            reader.finish()
        return {QUIET_MAX.key: max(quiet), BESIDE_MAX.key: max(beside), BESIDE_P99.key: percentile(beside, 99)}

    return trial


@measuring(
    *("npm-deprecate-5000", (OURS,), (SECONDS, BESIDE_MAX, GROWTH), "npm-5000"),
    *(Goal(SECONDS, "at most", 2), Goal(BESIDE_MAX, "at most", 20), Goal(GROWTH, "at most", 100)),
)
def deprecate_5000(arena: Arena, name: str) -> Trial:
    """The same, while all 5,000 versions are deprecated by one document of 10 MB."""
    server = LARGE.put_into(arena, name)
    SMALL.put_into(arena, name)
    url = server.package_url(LARGE.name)

    def trial(number: int) -> Mapping[str, float]:
        document = json.loads(get(f"{url}?write=true", {**WHOLE, **_PLAIN}).body)
        for manifest in document["versions"].values():
            manifest["deprecated"] = f"use another, says round {number}"
        body = json.dumps(document, separators=(",", ":")).encode()
        post = Post({"Content-Type": "application/json"}, [body], len(body), method="PUT")
        took_ms: list[float] = []
        with Watch(server.tree) as watch:
            beside = _probed(server, lambda: took_ms.extend(post_all(server.publish_target(LARGE.name), [post], 1)))
        return {SECONDS.key: took_ms[0] / 1e3, BESIDE_MAX.key: max(beside), GROWTH.key: watch.cost.rss_growth / MIB}

    return trial


def _probed(server: NodeRegistry, work: Callable[[], object]) -> list[float]:
    """The milliseconds that others wait for the small package while some work is done."""
    return probed(server.package_url(SMALL.name), NPM, PROBES_PER_S, work)


class _Reader(threading.Thread):
    """Reads the document repeatedly, like clients that install during publishes."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            get(self._url, NPM)

    def finish(self) -> None:
        """Stop reading."""
        self._stopped.set()
        self.join()


SCENARIOS: tuple[Scenario, ...] = (
    *(*READS, publish_300, publish_32, publish_large),
    *(publish_5000, first_byte, beside, deprecate_5000),
)
