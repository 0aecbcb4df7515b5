"""
Detects commits of any process without a system call.

SQLite's own counter costs two locks of the shared file, 3 us, for each question. So the writers count their commits in
a file that readers map into memory, see L{pkgrepo.storage.catalog.engine.write_lock}:

=====================  ================================================================================
the count              the generation is
=====================  ================================================================================
even, and unchanged    the one that was read from SQLite when the count was first seen: nobody has begun
                       a commit since
odd, or another one    read from SQLite: a commit is under way, or was made
=====================  ================================================================================

A program that does not count its commits (a shell, an older version of this one) is noticed after ``RECHECK_S``.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .write_lock import COUNT_BYTES, lock_path

RECHECK_S: Final = 0.1  # seconds
UNSETTLED: Final = -1  # no count has this value


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
