"""
A little room on the disk of the database, for a start while there is no other.

To read a database in WAL mode SQLite makes a file of 32 KiB that the processes share (``-shm``), and the last one to
stop removes it. So that a full disk keeps no server from starting, a file of that size is kept for the time when it is
needed. It holds nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pkgrepo.storage.private_files import private_opener

SIZE = 64 * 1024  # bytes: the shared file has 32 KiB until the log has 4,096 pages


class DiskReserve:
    """The file beside the database at ``path``. Both methods block."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-reserve")

    def allocate(self) -> None:
        """Set the room aside, where there is some."""
        with suppress(OSError):
            if self._path.exists():
                return
            draft = self._path.with_name(f"{self._path.name}.new")
            try:
                with open(draft, "wb", opener=private_opener) as file:
                    os.posix_fallocate(file.fileno(), 0, SIZE)
                draft.replace(self._path)
            except OSError:
                draft.unlink(missing_ok=True)

    def release(self) -> bool:
        """Give the room back; False when there was none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
