"""
Garbage collection while clients push, delete and pull continuously.

Set ``PKGREPO_GC_RACES_S`` to run for that many seconds instead of a fixed small number of rounds.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.configurations import MOVING, hosted
from tests.support.http_client import HttpClient
from tests.support.images import digest_of
from tests.support.random_pushes import RandomClient, make_pool
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

AUTH = ("admin", "correct horse battery")
CLIENTS = 8
ROUNDS = 50  # per client
SECONDS = float(os.environ.get("PKGREPO_GC_RACES_S", "0"))
GC = "/api/repository/main%2Fimages/gc?wait=true"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with one container repository, main/images."""
    with running(tmp_path, hosted("docker", images=MOVING)) as process:
        yield process


def collect(wire: HttpClient, **options: Any) -> Any:
    reply = wire.post_json(GC, options)
    assert reply.status == 200, reply.text
    assert reply.json["errors"] == []
    return reply.json


def collect_until(wire: HttpClient, over: threading.Event, totals: Counter[str]) -> None:
    """Collect repeatedly, with no grace time. Pushes must succeed at the first attempt all the same."""
    while not over.is_set():
        found = collect(wire, grace_seconds=0, delete_untagged=totals["runs"] % 2 == 1)
        totals["runs"] += 1
        totals["freed bytes"] += found["freed_bytes"]
        totals["blobs"] += found["removed"]["blobs"]
        totals["manifests"] += found["removed"]["manifests"]


def churn(client: RandomClient, goes_on: Callable[[int], bool]) -> None:
    done = 0
    while goes_on(done):
        client.step()
        done += 1


def copies(folder: Path) -> list[Path]:
    return [path for path in (folder / "data/storages/main/blobs").rglob("*") if path.is_file()]


def test_acknowledged_images_stay_complete_and_all_garbage_is_removed(server: ServerProcess, tmp_path: Path) -> None:
    wire, over, totals = HttpClient(server.url, AUTH), threading.Event(), Counter[str]()
    pool = make_pool(7)
    clients = [RandomClient(server.url, AUTH, number, pool=pool, repository="main/images") for number in range(CLIENTS)]
    until = time.monotonic() + SECONDS
    goes_on = (lambda _: time.monotonic() < until) if SECONDS else (lambda done: done < ROUNDS)
    with ThreadPoolExecutor(CLIENTS + 1) as threads:
        collecting = threads.submit(collect_until, wire, over, totals)
        try:
            for each in [threads.submit(churn, client, goes_on) for client in clients]:
                each.result()
        finally:
            over.set()
        collecting.result()
    kept: dict[str, int] = {}
    for client in clients:
        for image, tag in client.promised:
            client.pull(image, tag)
            for part in client.promised[image, tag]:
                kept |= {digest_of(data): len(data) for data in (part.manifest, *part.blobs)}
        client.close()
    before = sum(path.stat().st_size for path in copies(tmp_path))
    dry = collect(wire, grace_seconds=0, delete_untagged=True, dry_run=True)
    found = collect(wire, grace_seconds=0, delete_untagged=True)
    print(sum((client.counts for client in clients), totals), "left over", found["freed_bytes"])
    assert found["removed"] == dry["removed"]
    assert found["freed_bytes"] == dry["freed_bytes"] == before - sum(kept.values())
    assert sorted(path.stat().st_size for path in copies(tmp_path)) == sorted(kept.values())
    figures = wire.get("/api/repository/main%2Fimages/stats").json
    assert figures["storage_used_bytes"] == sum(kept.values())
    assert figures["unreferenced_bytes"] == 0
    for client in clients:
        for image, tag in client.promised:
            client.pull(image, tag)
        client.close()
