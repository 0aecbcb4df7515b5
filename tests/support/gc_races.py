"""Runs clients of a container registry concurrently while garbage is collected again and again."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.data_folder import DataFolder
from tests.support.http_client import HttpClient

GC = "/api/repository/main%2Fimages/gc?wait=true"
SECONDS = float(os.environ.get("PKGREPO_GC_RACES_S", "0"))  # of a race; 0: a fixed small number of rounds


def collect(wire: HttpClient, **options: Any) -> Any:
    """Collect the garbage of main/images, and return the answer."""
    reply = wire.post_json(GC, options)
    assert reply.status == 200, reply.text
    assert reply.json["errors"] == []
    return reply.json


def race(wire: HttpClient, steps: Sequence[Callable[[int], object]], rounds: int) -> Counter[str]:
    """
    Call each step ``rounds`` times in a thread of its own, with 0, 1, 2..., while garbage is collected.

    There is no grace time; every step must succeed all the same. Returns what the collections removed, in sum.
    """
    over, totals = threading.Event(), Counter[str]()
    until = time.monotonic() + SECONDS

    def collect_until() -> None:
        while not over.is_set():
            found = collect(wire, grace_seconds=0, delete_untagged=totals["runs"] % 2 == 1)
            totals["runs"] += 1
            totals["freed bytes"] += found["freed_bytes"]
            totals["blobs"] += found["removed"]["blobs"]
            totals["manifests"] += found["removed"]["manifests"]

    def repeat(step: Callable[[int], object]) -> None:
        done = 0
        while time.monotonic() < until if SECONDS else done < rounds:
            step(done)
            done += 1

    with ThreadPoolExecutor(len(steps) + 1) as threads:
        collecting = threads.submit(collect_until)
        try:
            for each in [threads.submit(repeat, step) for step in steps]:
                each.result()
        finally:
            over.set()
        collecting.result()
    return totals


def stored_copies(storages: Path) -> list[Path]:
    """The files of the blobs in the storage main of the folder of all storages."""
    return list(DataFolder(storages.parent).copies().values())
