"""
A copy of the database file of a running server, by SQLite's online backup (https://www.sqlite.org/backup.html).

A read transaction is kept open on the original: the copy is that one snapshot, and commits of the server neither wait
for it nor make it begin anew. The write-ahead log grows meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from pkgrepo.small_files import ensure_private, fsync_path
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable, explain, open_reader

STEP: Final = 512  # pages copied between two looks whether to go on: 4 MiB


def copy_online(source: Path, target: Path, goes_on: Callable[[], bool]) -> None:
    """
    Copy the database to a new file that only the owner can read, while others use it. Blocks.

    Ends early, with an incomplete copy, when ``goes_on`` returns False.

    :raises StorageFull: no room for the copy; :raises PkgrepoError: the database cannot be read
    """
    ensure_private(target)
    try:
        with closing(open_reader(source)) as original, closing(apsw.Connection(str(target))) as copy:
            original.execute("BEGIN")
            original.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
            with copy.backup("main", original, "main") as backup:
                while not backup.done and goes_on():
                    backup.step(STEP)
        seal(target)
    except apsw.Error as error:
        raise explain(error) from error


def seal(path: Path) -> None:
    """
    Make a copy one file, without a log beside it, durable and only for its owner. Blocks.

    :raises apsw.Error: it cannot be written; :raises OSError: it is not durable
    """
    ensure_private(path)
    with closing(apsw.Connection(str(path))) as copy:
        copy.pragma("journal_mode", "delete")
    fsync_path(path)


def check_copy(path: Path) -> None:
    """
    Check that a file is a whole database (PRAGMA integrity_check). Blocks.

    :raises CatalogUnusable: it is not
    """
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as copy:
            found = copy.execute("PRAGMA integrity_check(1)").get
    except apsw.Error as error:
        raise CatalogUnusable(f"the copy of the catalog cannot be read: {error}") from error
    if found != "ok":
        raise CatalogUnusable(f"the copy of the catalog is damaged: {found}")
