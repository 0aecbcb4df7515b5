"""
The free space of a file system, the low-water mark, and what the program does on a full disk.

Reading needs no free space: a response, a login, a bearer token or a start of the server never depends on a write. What
they would write is kept in memory or dropped:

============================================  =====================================================================
what cannot be written                        what happens instead
============================================  =====================================================================
publishes, changes, deletions                 refused with 507; nothing of them is kept
audit log rows of requests without a change   kept in memory, up to a bound; then counted (L{AuditLog})
uses of tokens, downloads                     kept in memory, up to a bound; further downloads are not counted
time of a user's last login, a new hash       dropped; the next login writes it
refresh token of a container client           not issued; the client keeps the password
storages.json                                 unchanged, which is logged; it is written at the next start
the readable layout                           updated later (L{LayoutFollower})
lines of the access log and the audit file    dropped
statistics of the database                    updated at the next start
migration of the database                     the start fails: nothing is changed without a backup copy
SQLite's shared file at a start               uses the reserved space (L{DiskReserve})
============================================  =====================================================================

The log has one line when this begins and one when it ends (L{FailureLog}).
"""

from __future__ import annotations

import os
from pathlib import Path

KEPT_FREE = 1024**3  # bytes kept free for the catalog and for deletions; on a small disk 2 % of it


def free_and_total(folder: Path) -> tuple[int, int]:
    """
    Return the free and the total bytes of the file system of a folder. :raises OSError: they cannot be read

    Where it has hardly any room for files (inodes), its bytes are of no use: then as large a part of them counts as
    free. Some file systems have no limit of files, and say 0.
    """
    found = os.statvfs(folder)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if found.f_favail * 50 < found.f_files:
        free = min(free, total * found.f_favail // found.f_files)
    return free, total


def low_water(total: int, configured: int | None = None) -> int:
    """Return the free bytes below which uploads are refused; ``configured`` is None for the default."""
    return min(KEPT_FREE, total // 50) if configured is None else configured
