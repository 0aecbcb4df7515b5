"""
Container images: reads and pushes as docker makes them, beside other registries and beside nginx.

Requests to pkgrepo carry a bearer token for a private repository; the others run open, which is less to do for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from attrs import evolve

from tests.bench.arena import CPU, GROWTH, P50, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import DOCKER, LoadFailed
from tests.bench.clients.registry import Pusher, Registry
from tests.bench.contestants.container import FEW_TAGS, MANY_TAGS, ImageRegistry, PkgrepoImages, PkgrepoTags
from tests.bench.measure import MIB, Watch
from tests.bench.packages.images import Blob, Image, make_image

from .figures import READ, SPEED, WRITTEN, ask, asking, downloading, figures, mirrored

OURS = PkgrepoImages.name
TWO = f"{PkgrepoImages.name}-2"
PEERS = (OURS, "nginx", "distribution", "distribution-3", "zot", "nora")
RECEIVERS = (OURS, "distribution", "distribution-3", "zot", "nora")
CPU_MS = Metric("cpu_ms", "CPU ms/blob", 1)
GIB = 1 << 30

SMALL = make_image("bench-small", 8, 1024)
TAGGED = make_image("bench-tags", 1, 1024)
LARGE = Blob("bench-large", GIB)

Address = Callable[[Registry], str]


def stocked(arena: Arena, name: str, image: Image, tags: int = 1) -> Registry:
    """Return a client of a contestant that has this image with this number of tags."""
    contestant = arena.get(name, ImageRegistry)
    names = [f"v{number:06}" for number in range(tags)]
    arena.once((name, image.name, "push"), lambda: contestant.push(image, names[0]))
    if tags > 1:
        arena.once((name, image.name, "tag"), lambda: contestant.tag(image, names))
    return contestant.client(image.name)


def _reading(image: Image, address: Address, *, tags: int = 1, count: int = 0) -> Callable[[Arena, str], Trial]:
    """
    Prepare one address to be asked for again and again; for nginx, the bytes that pkgrepo answers.

    The answer must list ``count`` tags.
    """

    def prepare(arena: Arena, name: str) -> Trial:
        client = stocked(arena, arena.source(name, PEERS), image, tags)
        sent = {**DOCKER, **client.headers}
        url = address(client)
        listed = ask(url, sent).body.count(b'"v0')
        if listed != count:
            raise LoadFailed(f"{url}: {listed} tags rather than {count}")
        return asking(arena, name, mirrored(arena, name, url, sent), DOCKER if name == "nginx" else sent)

    return prepare


def pull(arena: Arena, name: str) -> Trial:
    """Blob of 1 GiB, read by curl."""
    path = LARGE.ensure(arena.cache)
    headers: Mapping[str, str] = {}
    if name == "nginx":
        url = arena.nginx().mirror(path.name, path)
    else:
        contestant = arena.get(name, ImageRegistry)
        arena.once((name, LARGE.name), lambda: Pusher(contestant.client("bench-large")).push_blob(LARGE, path))
        client = contestant.client("bench-large")
        url, headers = client.blob_url(LARGE.digest), client.headers
    return downloading(arena, name, url, headers, LARGE.size)


def push(blobs: tuple[Blob, ...]) -> Callable[[Arena, str], Trial]:
    """Prepare a push of big blobs, all at once, into a registry that has just started and taken one small image."""

    def prepare(arena: Arena, name: str) -> Trial:
        paths = [blob.ensure(arena.cache) for blob in blobs]
        assert all(blob.digest for blob in blobs)  # computed here, since a round's clock would run

        def trial(_: int) -> Mapping[str, float]:
            with arena.fresh(name, ImageRegistry) as server:
                server.push(SMALL, "latest")
                pushers = [Pusher(server.client("bench-large")) for _ in blobs]
                with Watch(server.tree) as watch, ThreadPoolExecutor(len(blobs)) as pool:
                    list(pool.map(Pusher.push_blob, pushers, blobs, paths))
            return figures(watch, count=len(blobs), size=sum(blob.size for blob in blobs))

        return trial

    return prepare


def _middle_page(arena: Arena, name: str) -> Trial:
    contestant = arena.get(name, ImageRegistry)
    assert isinstance(contestant, PkgrepoTags)
    last = f"v{contestant.tags // 2:06}"
    page = _reading(TAGGED, lambda client: client.tags_url(f"?n=100&last={last}"), tags=contestant.tags, count=100)
    return page(arena, name)


def _by_digest(client: Registry) -> str:
    return client.manifest_url(SMALL.digest)


def _by_tag(client: Registry) -> str:
    return client.manifest_url("v000000")


def _per_core(times: float) -> tuple[Goal, ...]:
    """Goals: this factor of the requests/s per core of both versions of distribution."""
    return tuple(Goal(CPU, "at most", 1 / times, name) for name in ("distribution", "distribution-3"))


def _pushes(count: int) -> Scenario:
    return Scenario(
        name=f"image-push-{count}",
        about=f"{count} pushes of blobs of 64 MiB, all at once",
        lineup=(OURS, TWO, *RECEIVERS[1:]),
        metrics=(SPEED, CPU_MS, GROWTH, WRITTEN),
        prepare=push(tuple(Blob(f"bench-many-{number}", 64 * MIB) for number in range(count))),
        stock="none",
        goals=tuple(Goal(SPEED, "at least", 1.1, peer) for peer in ("distribution-3", "zot", "nora")),
    )


def _read(
    name: str, about: str, prepare: Callable[[Arena, str], Trial], *goals: Goal, stock: str = "image-small"
) -> Scenario:
    return Scenario(name, about, PEERS, READ, prepare, stock, goals)


_BIG = (SPEED, CPU_MS, GROWTH)
_FASTER = tuple(Goal(SPEED, "at least", 1, name) for name in ("distribution", "distribution-3"))
_SAME = tuple(Goal(metric, "at most", 1.3, FEW_TAGS) for metric in (CPU, P50))
_ALL_TAGS = _reading(TAGGED, lambda client: client.tags_url(), tags=10_000, count=10_000)
_OF_TAGS = "100 tags from the middle of the list, by how many there are"

SCENARIOS: tuple[Scenario, ...] = (
    _read("image-ping", "version check", _reading(SMALL, lambda client: f"{client.base_url}/v2/")),
    _read(
        *("image-tag", "manifest of 8 layers, by tag", _reading(SMALL, _by_tag)),
        *(*_per_core(8), Goal(CPU, "at most", 1, "zot")),
    ),
    _read("image-digest", "the same, by digest", _reading(SMALL, _by_digest)),
    _read(
        *("image-blob", "blob of 1 KB", _reading(SMALL, lambda client: client.blob_url(SMALL.layers[0].digest))),
        *_per_core(8),
    ),
    # Without zot, in which each new tag costs time proportional to the existing ones; 10,000 take over ten minutes.
    evolve(
        _read("image-tags", "list of 10,000 tags", _ALL_TAGS, stock="image-tags"),
        lineup=tuple(name for name in PEERS if name != "zot"),
    ),
    Scenario("image-tags-page", _OF_TAGS, (MANY_TAGS, FEW_TAGS), READ, _middle_page, "image-tags-page", _SAME),
    measuring("image-pull-1g", PEERS, _BIG, "image-pull", Goal(CPU_MS, "at most", 1.3, "nginx"))(pull),
    Scenario(
        *("image-push-1g", "push of a blob of 1 GiB", RECEIVERS, (*_BIG, WRITTEN), push((LARGE,)), "none"),
        (*_FASTER, Goal(GROWTH, "at most", 48)),
    ),
    *(_pushes(count) for count in (8, 16)),
)
