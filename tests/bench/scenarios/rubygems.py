"""Gems: indexes as Bundler and gem read them, beside nginx with the same bytes, and pushes into large repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.bench.arena import CPU, GROWTH, P50, P99, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import BUNDLER, get
from tests.bench.contestants.pkgrepo import BIG_GEMS, LITTLE_GEMS, MIDDLE_GEMS, PkgrepoGems, gem_post
from tests.bench.contestants.server import Nginx

from .figures import READ, SPEED, asking, mirrored, sending

FLOOR: Final = Nginx.name
PUSHES: Final = 200  # in a round; the clock of processor time ticks every 10 ms
PUSH_RATE = Metric("rate", "pushes/s")
CPU_MS = Metric("cpu_ms", "CPU ms/push", 2)


def _reading(path: str, more: Callable[[Mapping[str, str], int], Mapping[str, str]]) -> Callable[[Arena, str], Trial]:
    """
    Prepare reads of a document of 20,000 versions.

    ``more`` gives further header fields, from those of the whole document and its size.
    """

    def prepare(arena: Arena, name: str) -> Trial:
        source = arena.get(MIDDLE_GEMS, PkgrepoGems)
        url = mirrored(arena, name, f"{source.place('gems')}/{path}", {})
        whole = get(url, BUNDLER)
        return asking(arena, name, url, {**BUNDLER, **more(whole.headers, len(whole.body))})

    return prepare


def _nothing(_headers: Mapping[str, str], _size: int) -> Mapping[str, str]:
    return {}


def _validator(headers: Mapping[str, str], _size: int) -> Mapping[str, str]:
    return {"If-None-Match": headers["etag"]}


def _tail(_headers: Mapping[str, str], size: int) -> Mapping[str, str]:
    """What a Bundler asks for that lacks the last line."""
    return {"Range": f"bytes={size - 60}-", "If-None-Match": '"0123456789abcdef"'}


def _read(
    name: str,
    about: str,
    path: str,
    more: Callable[[Mapping[str, str], int], Mapping[str, str]] = _nothing,
    metrics: tuple[Metric, ...] = READ,
) -> Scenario:
    goals = (Goal(CPU, "at most", 4, FLOOR),)
    return Scenario(f"gems-{name}", about, (MIDDLE_GEMS, FLOOR), metrics, _reading(path, more), "gems", goals)


@measuring(
    *("gems-push", (BIG_GEMS, LITTLE_GEMS, MIDDLE_GEMS), (PUSH_RATE, CPU_MS, P50, P99, GROWTH), "gems-push"),
    *(Goal(P50, "at most", 10), Goal(P50, "at most", 1.3, LITTLE_GEMS), Goal(CPU_MS, "at most", 1.3, LITTLE_GEMS)),
)
def push(arena: Arena, name: str) -> Trial:
    """Push of a gem, one after the other, by how many versions there are."""
    server = arena.get(name, PkgrepoGems)
    server.push([gem_post("bench-warm")], 1)
    return sending(
        server,
        lambda number: [gem_post(f"bench-pushed-{number}-{each}") for each in range(PUSHES)],
        lambda posts: server.push(posts, 1),
    )


SCENARIOS: tuple[Scenario, ...] = (
    _read("info", "/info of a gem with 10 versions", "info/filler_7"),
    _read("versions-304", "/versions of 20,000 versions, unchanged", "versions", _validator),
    _read("versions-tail", "the last line of /versions", "versions", _tail),
    _read("versions", "the whole of /versions (1 MB)", "versions", metrics=(*READ, SPEED)),
    _read("specs", "specs.4.8.gz of 20,000 versions", "specs.4.8.gz", metrics=(*READ, SPEED)),
    push,
)
