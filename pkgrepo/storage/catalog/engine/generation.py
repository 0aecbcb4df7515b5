"""
The lock of writers, and the generation: a number that changes with each commit of any process.

SQLite's own counter costs two locks of the shared file, 3 us, for each question. So the writers count their commits in
the lock file, which readers map into memory. The count has eight bytes. It is odd while a commit is under way, and
after a process has died in one, until the next commit:

=====================  ================================================================================
the count              the generation is
=====================  ================================================================================
even, and unchanged    the one that was read from SQLite when the count was first seen: no commit has
                       begun since
odd, or another one    read from SQLite: a commit is under way, or was made
=====================  ================================================================================

A program that does not count its commits (a shell, an older version of this one) is noticed after ``RECHECK_S``.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pkgrepo.small_files import write_at

COUNT_BYTES: Final = 8


RECHECK_S: Final = 0.1  # seconds
UNSETTLED: Final = -1  # no count has this value


class WriteLock:
    """
    The lock that lets one process at a time write to the database at ``path``. Each thread needs an object of its own.

    SQLite waits for another writer by sleeping and trying again, which cost six times the throughput with sixteen
    writers. A ``flock`` wakes the next writer at once, and the kernel releases it when a process dies.
    """

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
    write_at(descriptor, count.to_bytes(COUNT_BYTES, sys.byteorder), 0)


class CommitCount:
    """The count of the commits to the database at ``path``; a process must have counted one in this file before."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(lock_path(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(descriptor, COUNT_BYTES, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        self.cell = memoryview(self._map).cast("Q")  # its only item is the count

    def close(self) -> None:
        """Unmap the file; ``cell`` must not be used any more."""
        self.cell.release()
        self._map.close()


class Generation:
    """
    The number of the state that a connection sees.

    ``read_version`` reads SQLite's own counter, ``PRAGMA data_version``. ``clock`` returns seconds.
    """

    def __init__(
        self, count: CommitCount, read_version: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cell = count.cell
        self._read_version = read_version
        self._clock = clock
        self._version = 0
        self._settled = UNSETTLED
        self._recheck_at = 0.0

    def __call__(self) -> int:
        """The present generation."""
        count = self._cell[0]
        if count != self._settled or self._clock() >= self._recheck_at:
            # The count was read before: a commit that begins from now on makes it another one.
            self._version = self._read_version()
            self._settled = UNSETTLED if count % 2 else count
            self._recheck_at = self._clock() + RECHECK_S
        return self._version


class GenerationPin:
    """Reads the generation once, and keeps it for the length of a ``with`` block in the reactor thread."""

    def __init__(self, generation: Callable[[], int]) -> None:
        self.pinned: int | None = None
        self._generation = generation

    def __enter__(self) -> int:
        self.pinned = self._generation()
        return self.pinned

    def __exit__(self, *_: object) -> None:
        self.pinned = None
