"""
The lock that lets one process at a time write to a database that several share, and a count of the commits.

SQLite waits for another writer by sleeping and trying again, which cost six times the throughput with sixteen writers.
A ``flock`` wakes the next writer at once, and the kernel releases it when a process dies.

The count is in the lock file, in eight bytes. It is odd while a commit is under way, and after a process has died in
one, until the next commit; L{pkgrepo.storage.catalog.engine.generation} reads it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

COUNT_BYTES: Final = 8


class WriteLock:
    """The lock file beside the database at ``path``. Each thread needs an object of its own."""

    def __init__(self, path: Path) -> None:
        self._path = lock_path(path)
        self._descriptor: int | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock during the block; waits for other writers first."""
        descriptor = self._open()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    @contextmanager
    def count_commit(self) -> Iterator[None]:
        """
        Count the commit that the block makes; only while the lock is held.

        :raises OSError: the count cannot be written; the block has not run then
        """
        descriptor = self._open()
        begun = int.from_bytes(os.pread(descriptor, COUNT_BYTES, 0), sys.byteorder) + 1 | 1
        _write(descriptor, begun)
        try:
            yield
        finally:
            with suppress(OSError):  # it stays odd, which costs readers time and nothing else
                _write(descriptor, begun + 1)

    def close(self) -> None:
        """Close the lock file; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor


def lock_path(path: Path) -> Path:
    """The path of the lock file of the database at ``path``."""
    return path.with_name(f"{path.name}-turns")


def _write(descriptor: int, count: int) -> None:
    # Not through mapped memory: a full disk is an error here, and a fatal signal there.
    os.pwrite(descriptor, count.to_bytes(COUNT_BYTES, sys.byteorder), 0)
