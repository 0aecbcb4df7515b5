"""
Garbage collection while crane pushes; afterwards crane validates every image.

Set ``PKGREPO_GC_RACES_S`` to run for that many seconds instead of a fixed small number of rounds.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.client_programs import client
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, host_of
from tests.support.gc_races import collect, race, stored_copies
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image, write_layout
from tests.support.server_process import ServerProcess

CONFIG = "retention.trash_days = 0\n" + hosted("docker", "images")
PUSHERS = 8
ROUNDS = 5  # per pusher


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


def test_acknowledged_images_stay_complete_and_all_garbage_is_removed(server: ServerProcess, tmp_path: Path) -> None:
    client("crane")  # skips the test if crane is missing
    wire = HttpClient(server.url, ADMIN)
    pushers = [Pusher(tmp_path / f"pusher-{number}", host_of(server), number) for number in range(PUSHERS)]
    totals = race(wire, [pusher.step for pusher in pushers], ROUNDS)
    kept = {name: image for pusher in pushers for name, image in pusher.kept.items()}
    assert kept
    for name, image in kept.items():
        assert pushers[0].run("crane", "digest", name).strip() == image.digest
        pushers[0].run("crane", "validate", "--remote", name)

    last = collect(wire, grace_seconds=0, delete_untagged=True)
    assert totals["blobs"] + last["removed"]["blobs"] > 0
    expected = {digest_of(data) for image in kept.values() for data in (*image.blobs, image.manifest)}
    stored = stored_copies(server.storages)
    assert {digest_of(path.read_bytes()) for path in stored} == expected
    assert len(stored) == len(expected)
