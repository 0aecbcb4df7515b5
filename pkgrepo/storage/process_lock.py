"""Which processes use a folder, so that leftovers of dead ones can be told from what living ones are working on."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

NAME = "in-use"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Presence:
    """
    The mark of a process on a folder, which ends with the process however that ends.

    Every process holds a shared lock on one file in the folder. Whoever could have had it alone when it came knows
    that what is older than that belongs to nobody. Every method blocks.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._descriptor: int | None = None

    def enter(self) -> datetime | None:
        """
        Mark the folder. When nobody else was there, the time of that by the file system's own clock, else None.

        Whatever is written from then on has that time or a later one, however coarsely the file system keeps times.
        Where locks are not to be had, somebody might be there.
        """
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError:
            return None
        since = None
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(self._descriptor)
            # Rounded down: whatever else is written at this very time must not look older.
            since = EPOCH + timedelta(microseconds=os.fstat(self._descriptor).st_mtime_ns // 1000)
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            return since
        return None

    @property
    def held(self) -> bool:
        """Whether the mark is open, locked or not."""
        return self._descriptor is not None

    def is_shared(self) -> bool:
        """Whether a process has marked the folder; leaves no mark, and no trace where nobody ever did."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.EWOULDBLOCK
        finally:
            os.close(descriptor)
        return False

    def leave(self) -> None:
        """Take the mark away; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
