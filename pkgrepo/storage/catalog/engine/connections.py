"""
Connections to the database file, with the same settings everywhere, and readers and transactions over them.

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

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull, TooManyOpenFiles
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.interfaces import Row, Value

NAME = "catalog"  # the storage that the domain errors name

# After one of these SQLite may have rolled back the whole transaction, so no command of the batch can continue.
STORAGE_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.ProtocolError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.InterruptError,
)


# Earlier releases can corrupt the file when one connection resets the log while another one checkpoints it, which
# several worker processes on one file do.
OLDEST_SQLITE = (3, 51, 3)
PAGE_SIZE = 8192  # bytes
BUSY_TIMEOUT_MS = 10_000  # only for programs that do not take the write lock: a shell, a backup program
READER_CACHE_KIB = 32 * 1024
WRITER_CACHE_KIB = 16 * 1024  # with 64 a publish costs the same, and each process keeps up to 48 MiB more
READER_MMAP = 256 * 1024 * 1024  # bytes; halves the first look-up after each commit
LOG_LIMIT = 64 * 1024 * 1024  # bytes to which a longer write-ahead log is truncated
STATEMENTS = 400  # prepared statements cached by a connection; all statements of the program fit


def limit_page_caches(memory: int) -> None:
    """
    Have SQLite reuse pages of its caches when this process has ``memory`` bytes of them and of others in use.

    It bounds nothing that a statement needs (sqlite3_soft_heap_limit64).
    """
    apsw.soft_heap_limit(memory)


def explain(error: apsw.Error | OSError) -> PkgrepoError:
    """Return the domain error for an error that prevented a commit or a read, with its cause."""
    explained: PkgrepoError = StorageFull(NAME) if isinstance(error, apsw.FullError) else StorageFailed(NAME)
    if _is_out_of_descriptors(error):
        explained = TooManyOpenFiles(NAME)
    explained.__cause__ = error
    return explained


def _is_out_of_descriptors(error: apsw.Error | OSError) -> bool:
    """Whether no descriptor is left. SQLite does not say why it cannot open a file: another one is tried for that."""
    if not isinstance(error, apsw.CantOpenError):
        return is_out_of_descriptors(error)
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as reason:
        return is_out_of_descriptors(reason)
    return False


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


class SqliteReader:
    """
    A ``Reader`` over a connection; as a context manager it is one read transaction, hence one snapshot.

    All rows of a statement are always fetched: an unfinished statement would keep its snapshot open, and the next query
    would not see later commits.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        # One cursor for all statements: creating one costs as much as a look-up.
        self._execute = connection.cursor().execute

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self._execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows; the caller limits them in SQL."""
        return self._execute(sql, parameters).fetchall()

    def __enter__(self) -> Self:
        self._execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.connection.in_transaction:
            self._execute("COMMIT")


class SqliteTransaction(SqliteReader):
    """A ``Transaction`` over a connection; the writer begins and ends it."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of rows that it changed."""
        self._execute(sql, parameters).fetchall()
        return self.connection.changes()

    def send(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        """Run one statement that has no result."""
        self._execute(sql, parameters).fetchall()

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT with a RETURNING clause for the new row's integer key. Returns that key."""
        ((key,),) = self.all(sql, parameters)
        return int(key)

    def begin_command(self) -> None:
        """Set the savepoint."""
        self._execute("SAVEPOINT command")

    def end_command(self) -> None:
        """Release the savepoint."""
        self._execute("RELEASE SAVEPOINT command")

    def undo_command(self) -> None:
        """Undo what the command did, and release the savepoint."""
        self._execute("ROLLBACK TO SAVEPOINT command")
        self._execute("RELEASE SAVEPOINT command")
