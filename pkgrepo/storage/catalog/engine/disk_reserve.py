"""
Reserves disk space beside the database, so that a server can start on a full disk.

To read a database in WAL mode SQLite creates a shared file of 32 KiB (``-shm``); the last process to stop removes it. A
reserve file keeps that much space allocated. A start that finds the disk full removes it first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pkgrepo.storage.private_files import private_opener

SIZE = 64 * 1024  # bytes: the shared file has 32 KiB until the log has 4,096 pages


class DiskReserve:
    """The reserve file beside the database at ``path``. Both methods block."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-reserve")

    def allocate(self) -> None:
        """Create the file, unless it exists or the disk is full."""
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
        """Remove the file. Returns False if there was none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
