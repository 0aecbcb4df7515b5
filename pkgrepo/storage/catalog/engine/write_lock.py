"""
The lock that lets one process at a time write to a database that several share.

SQLite waits for another writer by sleeping and trying again, which cost six times the throughput with sixteen writers.
A ``flock`` wakes the next writer at once, and the kernel releases it when a process dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WriteLock:
    """The lock file beside the database at ``path``. Each thread needs an object of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-turns")
        self._descriptor: int | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock during the block; waits for other writers first."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock file; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
