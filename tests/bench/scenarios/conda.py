"""Conda channels: repodata beside nginx with the same bytes, and uploads that the next read must show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
import zstandard

from tests.bench.arena import CPU, GROWTH, P50, P99, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import LoadFailed, Post, get, post_all
from tests.bench.contestants.pkgrepo import PkgrepoChannel, PkgrepoConda, conda_post
from tests.bench.contestants.server import Nginx

from .figures import READ, SPEED, reading, sending

FLOOR: Final = Nginx.name
OURS: Final = PkgrepoConda.name
UPLOADS: Final = 50  # in a round
INDEX: Final = "repodata_shards.msgpack.zst"
CPU_MS = Metric("cpu_ms", "CPU ms/upload", 2)


def shard_urls(server: PkgrepoChannel) -> list[str]:
    """The addresses of all shards, in the order of their digests."""
    index = zstandard.ZstdDecompressor().decompress(get(f"{server.folder_url}/{INDEX}", {}).body)
    digests: Mapping[str, bytes] = msgspec.msgpack.decode(index)["shards"]
    return [f"{server.folder_url}/shards/{digest.hex()}.msgpack.zst" for digest in sorted(digests.values())]


def _at(path: str) -> Callable[[PkgrepoChannel], str]:
    return lambda server: f"{server.folder_url}/{path}"


@measuring("conda-upload", (OURS,), (CPU_MS, P50, P99, GROWTH), "conda", Goal(P50, "at most", 20))
def upload(arena: Arena, _name: str) -> Trial:
    """Upload of a small package into 30,000 records, each shown by the next read of the index."""
    server = arena.get(OURS, PkgrepoConda)
    post_all(server.target("conda"), [conda_post("bench-warm")], 1)

    def send(posts: Mapping[str, Post]) -> Sequence[float]:
        took_ms = list[float]()
        for name, post in posts.items():
            took_ms += post_all(server.target("conda"), [post], 1)
            if name.encode() not in zstandard.decompress(get(f"{server.folder_url}/{INDEX}", {}).body, 1 << 27):
                raise LoadFailed(f"{name} was uploaded, and the next read does not show it")
        return took_ms

    def make(number: int) -> Mapping[str, Post]:
        return {name: conda_post(name) for name in (f"bench-{number}-{each}" for each in range(UPLOADS))}

    return sending(server, make, send)


def _read(
    name: str,
    about: str,
    address: Callable[[PkgrepoChannel], str],
    most: float,
    revalidate: Literal["no", "must"] = "no",
) -> Scenario:
    """Reads of a document of the folder."""

    def prepare(arena: Arena, name: str) -> Trial:
        return reading(arena, name, address(arena.get(OURS, PkgrepoConda)), {}, revalidate=revalidate)

    goals = (Goal(CPU, "at most", most, FLOOR),)
    return Scenario(f"conda-{name}", about, (OURS, FLOOR), (*READ, SPEED), prepare, "conda", goals)


SCENARIOS: tuple[Scenario, ...] = (
    _read("repodata", "repodata.json of 30,000 records (14 MB)", _at("repodata.json"), 1.3),
    _read("repodata-zst", "the same as .zst (2 MB)", _at("repodata.json.zst"), 1.3),
    _read("repodata-304", "the same, unchanged", _at("repodata.json.zst"), 4, "must"),
    _read("shards", "the index of 3,000 shards (100 kB)", _at(INDEX), 4),
    _read("shard", "one shard, of 10 records", lambda server: shard_urls(server)[0], 4),
    upload,
)
