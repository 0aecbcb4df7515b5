"""Threads that run queries on one server, each with a connection; and a reader of a catalog that is not started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from psycopg import errors
from twisted.internet.interfaces import IReactorFromThreads

from pkgrepo.concurrency.pools import Pool
from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.snapshots import Snapshots, source_of
from pkgrepo.storage.catalog.postgresql.schema import is_empty
from pkgrepo.storage.catalog.postgresql.sessions import SERVER_ERRORS, Address, first_line, open_reader
from pkgrepo.storage.catalog.postgresql.transactions import PostgresReader

T = TypeVar("T")

LOOKS: Final = 6  # threads for short queries
SCANS: Final = 3  # threads for longer ones


class Readers:
    """Connections are made by ``connect`` when they are needed, and kept; ``name`` is that of the threads."""

    def __init__(
        self, connect: Callable[[], PostgresReader], reactor: IReactorFromThreads, name: str = "catalog"
    ) -> None:
        self._look = Pool(reactor, f"{name}-look", LOOKS)
        self._scan = Pool(reactor, name, SCANS)
        self._connect = connect
        self._idle: list[PostgresReader] = []
        self._snapshots = Snapshots()

    def start(self) -> None:
        """Accept queries."""
        self._scan.start()
        self._look.start()

    async def wait_idle(self) -> bool:
        """Wait until all accepted queries are done. Returns whether there were any."""
        return any([await self._look.wait_idle(), await self._scan.wait_idle()])

    async def stop(self) -> None:
        """Finish all accepted queries, end the threads, and disconnect."""
        await self._look.stop()
        await self._scan.stop()
        for each in self._idle:
            each.connection.close()
        self._idle.clear()

    def pool(self, *, brief: bool) -> Pool:
        """Return the threads for short queries, or those for longer ones."""
        return self._look if brief else self._scan

    def read(
        self,
        query: Callable[..., object],
        call: Callable[[Reader], T],
        prepare: Callable[[PostgresReader], None] = lambda _: None,
    ) -> T:
        """
        Make a ``call`` of a query in one snapshot; on one of the threads.

        ``prepare`` is given the connection before. If one that was idle turns out to be lost, a new one is used.

        :raises psycopg.Error: one of ``SERVER_ERRORS``, or one that the query caused
        """
        while True:
            reader, is_new = self._idle_reader()
            try:
                prepare(reader)
                result = self._snapshots.run(reader, source_of(query), call)
            except SERVER_ERRORS:
                reader.connection.close()
                if is_new:
                    raise
            except BaseException:
                self._idle.append(reader)
                raise
            else:
                self._idle.append(reader)
                return result

    def _idle_reader(self) -> tuple[PostgresReader, bool]:
        try:
            return self._idle.pop(), False  # without a check before: another thread could take the last one in between
        except IndexError:
            return self._connect(), True


@contextmanager
def reading_once(address: Address) -> Iterator[Reader | None]:
    """
    Return a context manager that reads one snapshot; None if the database is empty.

    Its block ends early, without an error, if a table or a column that it needs is missing: the start upgrades.

    :raises CatalogUnusable: the server cannot be reached
    """
    try:
        with open_reader(address) as session:
            if is_empty(session):
                yield None
                return
            with PostgresReader(session) as reader, suppress(errors.UndefinedTable, errors.UndefinedColumn):
                yield reader
    except SERVER_ERRORS as error:
        raise CatalogUnusable(f"the database cannot be read: {first_line(error)}") from error
