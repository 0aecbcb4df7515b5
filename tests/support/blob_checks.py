"""Checks, after a crash or a disk error, that a blob store still has everything that it acknowledged."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

FUTURE = datetime(2200, 1, 1, tzinfo=UTC)
PROJECT = Path(__file__).parents[2]


def start_child(root: Path, kind: str, *more: str, prefix: Iterable[str] = ()) -> subprocess.Popen[bytes]:
    command = [*prefix, sys.executable, "-m", "tests.support.blob_child", str(root), kind, *more]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def read_promises(lines: Iterable[bytes]) -> list[dict]:
    """Return the acknowledgements that a child printed, without an incomplete last line."""
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


async def assert_promises_kept(store, promises: Iterable[dict]) -> None:
    """Check that committed blobs are complete, suspended uploads resume, and blobs match their locators."""
    for promise in promises:
        if "locator" in promise:
            body = await store.open(promise["locator"]).read(0, promise["size"] + 1)
            assert (len(body), hashlib.sha256(body).hexdigest()) == (promise["size"], promise["sha256"])
        elif "upload" in promise:
            async with await store.resume(promise["upload"], promise["state"].encode()) as upload:
                upload.write(b"tail")  # makes the store read the file again and compare it with the state
                assert (await upload.commit()).size == promise["size"] + 4


async def assert_visible_is_whole(store) -> int:
    """Check that every listed copy matches its locator. Returns their number."""
    count, after = 0, ""
    while page := await store.scan(after):
        for locator, size, _ in page:
            body = await store.open(locator).read(0, size)
            assert hashlib.sha256(body).hexdigest() == locator[3:67]
            count += 1
        after = page[-1][0]
    return count


def files_below(folder: Path) -> list[str]:
    return sorted(str(Path(where) / name) for where, _, names in os.walk(folder) for name in names)
