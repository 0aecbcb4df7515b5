"""Conda channels: repodata beside nginx with the same bytes, and uploads that the next read must show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import zstandard

from tests.bench.arena import CPU, GROWTH, P50, P99, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import LoadFailed, Post, get
from tests.bench.contestants.conda import PkgrepoChannel, PkgrepoConda, package_post
from tests.bench.contestants.server import Nginx

from .figures import READ, SPEED, asking, mirrored, sending

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


def _reading(address: Callable[[PkgrepoChannel], str], *, revalidate: bool = False) -> Callable[[Arena, str], Trial]:
    """Prepare reads of a document of the folder; C{revalidate} sends the validator of its first answer."""

    def prepare(arena: Arena, name: str) -> Trial:
        url = mirrored(arena, name, address(arena.get(OURS, PkgrepoConda)), {})
        sent = {"If-None-Match": get(url, {}).headers["etag"]} if revalidate else {}
        return asking(arena, name, url, sent)

    return prepare


@measuring("conda-upload", (OURS,), (CPU_MS, P50, P99, GROWTH), "conda", Goal(P50, "at most", 20))
def upload(arena: Arena, _name: str) -> Trial:
    """Upload of a small package into 30,000 records, each shown by the next read of the index."""
    server = arena.get(OURS, PkgrepoConda)
    server.upload(package_post("bench-warm"))

    def send(posts: Mapping[str, Post]) -> Sequence[float]:
        took_ms = []
        for name, post in posts.items():
            took_ms.append(server.upload(post))
            if name.encode() not in zstandard.decompress(get(f"{server.folder_url}/{INDEX}", {}).body, 1 << 27):
                raise LoadFailed(f"{name} was uploaded, and the next read does not show it")
        return took_ms

    def make(number: int) -> Mapping[str, Post]:
        return {name: package_post(name) for name in (f"bench-{number}-{each}" for each in range(UPLOADS))}

    return sending(server, make, send)


def _read(
    name: str, about: str, address: Callable[[PkgrepoChannel], str], most: float, *, revalidate: bool = False
) -> Scenario:
    prepare, goals = _reading(address, revalidate=revalidate), (Goal(CPU, "at most", most, FLOOR),)
    return Scenario(f"conda-{name}", about, (OURS, FLOOR), (*READ, SPEED), prepare, "conda", goals)


SCENARIOS: tuple[Scenario, ...] = (
    _read("repodata", "repodata.json of 30,000 records (14 MB)", _at("repodata.json"), 1.3),
    _read("repodata-zst", "the same as .zst (2 MB)", _at("repodata.json.zst"), 1.3),
    _read("repodata-304", "the same, unchanged", _at("repodata.json.zst"), 4, revalidate=True),
    _read("shards", "the index of 3,000 shards (100 kB)", _at(INDEX), 4),
    _read("shard", "one shard, of 10 records", lambda server: shard_urls(server)[0], 4),
    upload,
)
