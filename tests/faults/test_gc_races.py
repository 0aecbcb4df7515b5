"""
Garbage collection while clients push, delete and pull continuously.

Set ``PKGREPO_GC_RACES_S`` to run for that many seconds instead of a fixed small number of rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import MOVING, hosted
from tests.support.gc_races import collect, race, stored_copies
from tests.support.http_client import HttpClient
from tests.support.images import digest_of
from tests.support.random_pushes import RandomClient, make_pool
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

AUTH = ("admin", "correct horse battery")
CLIENTS = 8
ROUNDS = 50  # per client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with one container repository, main/images, that keeps nothing in a trash."""
    with running(tmp_path, "retention.trash_days = 0\n" + hosted("docker", images=MOVING)) as process:
        yield process


def test_acknowledged_images_stay_complete_and_all_garbage_is_removed(server: ServerProcess, tmp_path: Path) -> None:
    wire, pool = HttpClient(server.url, AUTH), make_pool(7)
    clients = [RandomClient(server.url, AUTH, number, pool=pool, repository="main/images") for number in range(CLIENTS)]
    totals = race(wire, [client.step for client in clients], ROUNDS)
    kept: dict[str, int] = {}
    for client in clients:
        for image, tag in client.promised:
            client.pull(image, tag)
            for part in client.promised[image, tag]:
                kept |= {digest_of(data): len(data) for data in (part.manifest, *part.blobs)}
        client.close()
    before = sum(path.stat().st_size for path in stored_copies(tmp_path / "data/storages"))
    dry = collect(wire, grace_seconds=0, delete_untagged=True, dry_run=True)
    found = collect(wire, grace_seconds=0, delete_untagged=True)
    print(sum((client.counts for client in clients), totals), "left over", found["freed_bytes"])
    assert found["removed"] == dry["removed"]
    assert found["freed_bytes"] == dry["freed_bytes"] == before - sum(kept.values())
    assert sorted(path.stat().st_size for path in stored_copies(tmp_path / "data/storages")) == sorted(kept.values())
    figures = wire.get("/api/repository/main%2Fimages/stats").json
    assert figures["storage_used_bytes"] == sum(kept.values())
    assert figures["unreferenced_bytes"] == 0
    for client in clients:
        for image, tag in client.promised:
            client.pull(image, tag)
        client.close()
