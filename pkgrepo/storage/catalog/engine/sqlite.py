"""The catalog in one SQLite file, for any number of processes on one machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

import apsw
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from zope.interface import implementer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.interfaces import ICatalog, Reader, Row, Transaction
from pkgrepo.small_files import ensure_private, private_opener, tighten
from pkgrepo.storage.catalog.engine.commands import CommandQueue
from pkgrepo.storage.catalog.engine.connections import (
    STORAGE_ERRORS,
    CatalogUnusable,
    SqliteReader,
    check_library,
    explain,
    open_reader,
    open_writer,
)
from pkgrepo.storage.catalog.engine.generation import CommitCount, Generation, GenerationPin, WriteLock
from pkgrepo.storage.catalog.engine.schema import Schema, load_schema, upgrade
from pkgrepo.storage.catalog.engine.snapshots import Snapshots, source_of
from pkgrepo.storage.catalog.engine.writer import SqliteBatches

# Of all tables (0x10000) that changed much (0x02), from some rows of each (0x10): 0.4 s of processor time for 1,000,000
# packages, instead of 1.8 s from all rows.
OPTIMIZE: Final = "PRAGMA optimize = 0x10012"


SIZE = 64 * 1024  # bytes: the shared file has 32 KiB until the log has 4,096 pages
T = TypeVar("T")
P = ParamSpec("P")
SCANS = 3  # reader threads; each has a connection with its own cache


def renew_statistics(tx: Transaction) -> bool:
    """
    Renew the statistics of the tables that grew or shrank tenfold, for all connections. Returns whether any did.

    A catalog that was small at the start may have grown by orders of magnitude since.
    """
    before = _statistics(tx)
    tx.all(OPTIMIZE)
    if _statistics(tx) == before:
        return False
    # Any change of the schema makes the connections of all processes read it again. ANALYZE makes none.
    tx.execute("CREATE TABLE statistics_renewed (id INTEGER)")
    tx.execute("DROP TABLE statistics_renewed")
    return True


def _statistics(tx: Transaction) -> list[Row]:
    if not tx.all("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'"):
        return []
    return tx.all("SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY tbl, idx")


class DiskReserve:
    """
    A file beside the database at ``path`` that reserves disk space, so that a server can start on a full disk.

    To read a database in WAL mode SQLite creates a shared file of 32 KiB (``-shm``); the last process to stop removes
    it. A start that finds the disk full removes the reserve first. Both methods block.
    """

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


@implementer(ICatalog)
class SqliteCatalog:
    """
    ``look``, ``peek`` and ``generation`` are for the reactor thread, which has a connection of its own.

    Each call reads one snapshot. A commit is visible to every ``look`` after its ``write`` has returned; a commit of
    another process is visible to every ``look`` after it.
    """

    def __init__(self, path: Path, *, reactor: IReactorFromThreads, schema: Schema | None = None) -> None:
        self._path = path
        self._schema = schema
        self._writer = CommandQueue(SqliteBatches(path), reactor)
        self._scanners = Pool(reactor, "catalog", SCANS)
        self._idle: list[SqliteReader] = []
        self._reader: SqliteReader | None = None
        self._commits: CommitCount | None = None
        self._generation: Generation | None = None
        self._pin = GenerationPin(self._read_generation)
        self._snapshots = Snapshots()
        self._reserve = DiskReserve(path)

    async def start(self) -> None:
        """
        Create or upgrade the database, and open it.

        :raises CatalogUnusable: it is from a newer version or another program, or damaged, or cannot be opened, or the
            SQLite library is too old
        """
        check_library()
        self._scanners.start()
        try:
            connection, commits = await self._scanners(self._open)
        except BaseException:
            await self._scanners.stop()
            raise
        self._reader = SqliteReader(connection)
        self._commits = commits
        self._generation = Generation(commits, self._read_version)
        self._writer.start()

    async def wait_idle(self) -> bool:
        """Wait until all accepted commands and queries are done. Returns whether there were any."""
        return any([await self._writer.wait_idle(), await self._scanners.wait_idle()])

    async def stop(self) -> None:
        """Finish all accepted commands, then close the database."""
        reader, commits = self._reader, self._commits
        if reader is None or commits is None:
            return
        await self._writer.drain()
        await self._scanners.stop()
        for each in (reader, *self._idle):
            each.connection.close()
        self._idle.clear()
        self._reader = self._generation = self._commits = None
        commits.close()
        # The last connection to close checkpoints the log, which only the writer's connection can.
        await self._writer.close()
        self._reserve.allocate()

    def pinned(self) -> GenerationPin:
        """Return a context manager, for code that does not wait, within which ``generation`` is read once."""
        return self._pin

    def generation(self) -> int:
        """Return a number that changes whenever a commit of any process has become visible."""
        pinned = self._pin.pinned
        return self._read_generation() if pinned is None else pinned

    async def look(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query of a few indexed look-ups at once, in the calling (reactor) thread; it never suspends."""
        return self.peek(query, *args, **kwargs)

    def peek(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query of a few indexed look-ups now, in the calling (reactor) thread; never ``NOT_NOW``."""
        try:
            return self._snapshots.run(self._reading(), source_of(query), lambda reader: query(reader, *args, **kwargs))
        except STORAGE_ERRORS as error:
            raise explain(error) from error

    def scan(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a longer query on a reader thread."""
        return self._scanners(self._scan, lambda reader: query(reader, *args, **kwargs))

    def write(
        self, command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """Run a command in a transaction, and return its result when it is durable. Cancelling drops the result."""
        return self._writer.submit(command, *args, **kwargs)

    def renew_statistics(self) -> Deferred[bool]:
        """Renew the statistics of the query planner, if tables have changed much. Returns whether they were renewed."""
        return self.write(renew_statistics)

    def _read_generation(self) -> int:
        if self._generation is None:
            raise RuntimeError("the catalog does not run")
        return self._generation()

    def _read_version(self) -> int:
        try:
            return int(self._reading().all("PRAGMA data_version")[0][0])
        except STORAGE_ERRORS as error:
            raise explain(error) from error

    def _reading(self) -> SqliteReader:
        if self._reader is None:
            raise RuntimeError("the catalog does not run")
        return self._reader

    def _open(self) -> tuple[apsw.Connection, CommitCount]:
        lock = WriteLock(self._path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._close_to_others()
            with lock.hold():
                try:
                    connection = self._prepare(lock)
                except (*STORAGE_ERRORS, OSError):
                    if not self._reserve.release():
                        raise
                    connection = self._prepare(lock)
            return connection, CommitCount(self._path)
        except STORAGE_ERRORS as error:
            damaged = isinstance(error, apsw.CorruptError | apsw.NotADBError)
            hint = "; restore a copy, or move it away and run pkgrepo reindex" if damaged else ""
            raise CatalogUnusable(f"{self._path} cannot be used: {error}{hint}") from error
        except OSError as error:
            raise CatalogUnusable(f"{self._path} cannot be used: {error.strerror}") from error
        finally:
            lock.close()

    def _prepare(self, lock: WriteLock) -> apsw.Connection:
        with lock.count_commit():
            return self._upgrade()

    def _upgrade(self) -> apsw.Connection:
        connection = open_writer(self._path)
        try:
            upgrade(connection, self._path, self._schema or load_schema())
            with suppress(apsw.FullError):  # not needed for the start
                connection.execute(OPTIMIZE)
            self._reserve.allocate()
            return open_reader(self._path)
        finally:
            connection.close()

    def _close_to_others(self) -> None:
        """
        Set mode 0600 on the database, which holds signing keys and password hashes, and on the files beside it.

        SQLite gives its log and its shared file the mode of the database. Copies of it have its name as a prefix.
        """
        ensure_private(self._path)
        for each in self._path.parent.glob(f"{self._path.name}*"):
            tighten(each)

    def _scan(self, query: Callable[[Reader], T]) -> T:
        try:
            reader = self._idle_reader()
            try:
                with reader:
                    return query(reader)
            finally:
                self._idle.append(reader)
        except STORAGE_ERRORS as error:
            raise explain(error) from error

    def _idle_reader(self) -> SqliteReader:
        try:
            return self._idle.pop()  # without a check before: another thread could take the last one in between
        except IndexError:
            return SqliteReader(open_reader(self._path))
