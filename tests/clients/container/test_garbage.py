"""
Garbage collection while crane pushes; afterwards crane validates every image.

Set ``PKGREPO_GC_RACES_S`` to run for that many seconds instead of a fixed small number of rounds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.client_programs import client
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, host_of, ok
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image, write_layout
from tests.support.server_process import ServerProcess

CONFIG = hosted("docker", "images")
GC = "/api/repository/main%2Fimages/gc?wait=true"
PUSHERS = 8
ROUNDS = 5  # per pusher
SECONDS = float(os.environ.get("PKGREPO_GC_RACES_S", "0"))


class Pusher(ContainerClients):
    """
    Pushes images by crane, and deletes every second one.

    ``kept`` has the acknowledged images that were not deleted. All pushers share layers, and push them again
    after they were collected.
    """

    def __init__(self, folder: Path, host: str, number: int) -> None:
        folder.mkdir()
        super().__init__(folder, host)
        self.log_in(*ADMIN)
        self.number = number
        self.name = f"{host}/main/images/pusher-{number}"
        self.kept: dict[str, Image] = {}

    def step(self, index: int) -> None:
        image = make_image(f"layer {(self.number + index) % 5}", annotations={"image": f"{self.number}-{index}"})
        layout = write_layout(self.folder / str(index), image)
        self.run("crane", "push", layout, f"{self.name}:{index}")
        if index % 2:
            self.run("crane", "delete", f"{self.name}@{image.digest}")
        else:
            self.kept[f"{self.name}:{index}"] = image


def collect_until(wire: HttpClient, over: threading.Event) -> int:
    """Collect repeatedly with no grace time. Returns the number of removed blobs."""
    removed = 0
    while not over.is_set():
        found = ok(wire.post_json(GC, {"grace_seconds": 0, "delete_untagged": True})).json
        assert found["errors"] == []
        removed += found["removed"]["blobs"]
    return removed


def work(pusher: Pusher, goes_on: Callable[[int], bool]) -> None:
    index = 0
    while goes_on(index):
        pusher.step(index)
        index += 1


def test_acknowledged_images_stay_complete_and_all_garbage_is_removed(server: ServerProcess, tmp_path: Path) -> None:
    client("crane")  # skips the test if crane is missing
    wire, over = HttpClient(server.url, ADMIN), threading.Event()
    pushers = [Pusher(tmp_path / f"pusher-{number}", host_of(server), number) for number in range(PUSHERS)]
    until = time.monotonic() + SECONDS
    goes_on = (lambda _: time.monotonic() < until) if SECONDS else (lambda index: index < ROUNDS)
    with ThreadPoolExecutor(PUSHERS + 1) as threads:
        collecting = threads.submit(collect_until, wire, over)
        try:
            for each in [threads.submit(work, pusher, goes_on) for pusher in pushers]:
                each.result()
        finally:
            over.set()
        removed = collecting.result()
    kept = {name: image for pusher in pushers for name, image in pusher.kept.items()}
    assert kept
    for name, image in kept.items():
        assert pushers[0].run("crane", "digest", name).strip() == image.digest
        pushers[0].run("crane", "validate", "--remote", name)

    last = ok(wire.post_json(GC, {"grace_seconds": 0, "delete_untagged": True})).json
    assert removed + last["removed"]["blobs"] > 0
    expected = {digest_of(data) for image in kept.values() for data in (*image.blobs, image.manifest)}
    stored = [path for path in (server.folder / "data/storages/main/blobs").rglob("*") if path.is_file()]
    assert {digest_of(path.read_bytes()) for path in stored} == expected
    assert len(stored) == len(expected)
