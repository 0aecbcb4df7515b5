"""
Connections to the database file, set up alike for whoever opens one.

================  ===========================================================================================
setting           why
================  ===========================================================================================
WAL               readers neither wait for the writer nor hold it up
synchronous FULL  a commit that was answered survives a power cut; NORMAL forgets all since the last checkpoint
page size 8192    documents and long rows need half as many overflow pages
no autocheckpoint the writer copies the log back between its batches, never in the middle of somebody's commit
stable plans      otherwise every join is planned again for each new value: 10.5 us instead of 1.8 for a file
mmap (readers)    a commit of anybody empties a reader's page cache; mapped pages need no read call to come back
================  ===========================================================================================
"""

from __future__ import annotations

from pathlib import Path

import apsw

from pkgrepo.errors import PkgrepoError

# Earlier releases can corrupt the file when one connection resets the log while another checkpoints it; several
# worker processes on one file are exactly that situation.
OLDEST_SQLITE = (3, 51, 3)

PAGE_SIZE = 8192  # bytes
BUSY_TIMEOUT_MS = 10_000  # only for what the writers' lock does not cover: a shell, a backup program
READER_CACHE_KIB = 32 * 1024
WRITER_CACHE_KIB = 64 * 1024
READER_MMAP = 256 * 1024 * 1024  # bytes; halves the first look-up after each commit
LOG_LIMIT = 64 * 1024 * 1024  # bytes that the write-ahead log keeps on the disk once it was longer
STATEMENTS = 400  # prepared ones kept by a connection; all queries of the program fit


class CatalogUnusable(PkgrepoError):  # noqa: N818 - the domain's errors say what happened
    """The database cannot be opened by this program; the text says why and what to do."""


def check_library(version: str | None = None) -> None:
    """
    Make sure that the SQLite library may be used by several processes; ``version`` is the loaded one's by default.

    :raises CatalogUnusable: it is too old
    """
    found = version or apsw.sqlite_lib_version()
    if tuple(map(int, found.split("."))) < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise CatalogUnusable(f"SQLite {found} can corrupt a database that several processes use; install {wanted}")


def open_writer(path: Path) -> apsw.Connection:
    """A connection that may write; it makes the file if need be, and never checkpoints by itself."""
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    for name, value in (
        ("page_size", PAGE_SIZE),  # takes effect in a file that is still empty
        ("journal_mode", "wal"),
        ("synchronous", "full"),
        ("wal_autocheckpoint", 0),
        ("journal_size_limit", LOG_LIMIT),
        ("foreign_keys", True),
        ("temp_store", "memory"),
        ("cache_size", -WRITER_CACHE_KIB),
    ):
        connection.pragma(name, value)
    return connection


def open_reader(path: Path) -> apsw.Connection:
    """A connection that cannot write."""
    connection = _open(path, apsw.SQLITE_OPEN_READONLY)
    for name, value in (
        ("temp_store", "memory"),
        ("cache_size", -READER_CACHE_KIB),
        ("mmap_size", READER_MMAP),
    ):
        connection.pragma(name, value)
    return connection


def _open(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=STATEMENTS)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection
