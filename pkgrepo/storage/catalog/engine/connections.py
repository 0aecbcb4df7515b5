"""
Opens connections to the database file, with the same settings everywhere.

================  ===========================================================================================
setting           why
================  ===========================================================================================
WAL               readers neither wait for the writer nor delay it
synchronous FULL  acknowledged commits survive a power cut; NORMAL loses those since the last checkpoint
page size 8192    documents and long rows need half as many overflow pages
no autocheckpoint the writer checkpoints between its batches, never during a commit
stable plans      otherwise each join is planned again for each new value: 10.5 us instead of 1.8 for a file
mmap (readers)    every commit empties the readers' page caches; mapped pages are read again without a call
================  ===========================================================================================
"""

from __future__ import annotations

from pathlib import Path

import apsw

from pkgrepo.errors import PkgrepoError

# Earlier releases can corrupt the file when one connection resets the log while another one checkpoints it, which
# several worker processes on one file do.
OLDEST_SQLITE = (3, 51, 3)

PAGE_SIZE = 8192  # bytes
BUSY_TIMEOUT_MS = 10_000  # only for programs that do not take the write lock: a shell, a backup program
READER_CACHE_KIB = 32 * 1024
WRITER_CACHE_KIB = 64 * 1024
READER_MMAP = 256 * 1024 * 1024  # bytes; halves the first look-up after each commit
LOG_LIMIT = 64 * 1024 * 1024  # bytes to which a longer write-ahead log is truncated
STATEMENTS = 400  # prepared statements cached by a connection; all statements of the program fit


class CatalogUnusable(PkgrepoError):  # noqa: N818 - the domain's errors say what happened
    """The database cannot be opened by this program; the message says why and what to do."""


def check_library(version: str | None = None) -> None:
    """
    Check that several processes may use a database with this SQLite library; ``version`` is that of the loaded one.

    :raises CatalogUnusable: it is too old
    """
    found = version or apsw.sqlite_lib_version()
    if tuple(map(int, found.split("."))) < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise CatalogUnusable(f"SQLite {found} can corrupt a database that several processes use; install {wanted}")


def open_writer(path: Path) -> apsw.Connection:
    """Open a connection for writing. It creates the file if needed, and never checkpoints by itself."""
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
    """Open a read-only connection."""
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
