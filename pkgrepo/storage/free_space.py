"""
How much room a file system has, how much of it is kept free, and what the program does when there is none left.

Reading needs no room: neither an answer, nor a login, a bearer token or a start of the server waits for something to
be written down. What such a step would note is kept in memory or dropped:

============================================  =====================================================================
what cannot be written                        what becomes of it
============================================  =====================================================================
publishes, changes, deletions                 refused with 507; nothing of them stays
rows of the audit log that tell of no change  kept in memory, up to a bound; then counted (L{AuditTrail})
uses of tokens, downloads                     kept in memory, up to a bound; downloads are not counted beyond it
time of a user's last login, a new hash       dropped; the next login is noted instead
refresh token of a container client           not given; the client keeps the password
storages.json                                 left as it is, and the log says so; it is written at the next start
the readable layout                           shown later (L{LayoutFollower})
lines of the access log and the audit file    dropped
statistics of the database                    left to the next start
migration of the database                     refuses the start: nothing is changed without a kept copy
SQLite's shared file at a start               takes the room that is set aside for it (L{DiskReserve})
============================================  =====================================================================

The log has one line when this begins and one when it is over (L{FailureLog}).
"""

from __future__ import annotations

import os
from pathlib import Path

KEPT_FREE = 1024**3  # bytes kept free for the catalog and for removing things; on a small disk 2 % of it


def free_and_total(folder: Path) -> tuple[int, int]:
    """Bytes of the file system of a folder. :raises OSError: it does not say"""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


def low_water(total: int, configured: int | None = None) -> int:
    """The free bytes below which a file system of ``total`` bytes takes nothing more; None leaves it to the program."""
    return min(KEPT_FREE, total // 50) if configured is None else configured
