"""Which processes use a folder, so that leftovers of dead ones can be told from what living ones are working on."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

NAME = "in-use"


class Presence:
    """
    The mark of a process on a folder, which ends with the process however that ends.

    Every process holds a shared lock on one file in the folder. Whoever could have had it alone when it came knows
    that what is older than that belongs to nobody. Both methods block.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._descriptor: int | None = None

    def enter(self) -> bool:
        """Mark the folder; whether nobody else was there. Where locks are not to be had, somebody might be."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError:
            return False
        self._descriptor = descriptor
        alone = False
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return alone
        return False

    def leave(self) -> None:
        """Take the mark away; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
