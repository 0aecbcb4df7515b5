"""The catalog in a PostgreSQL database, for any number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, Final, ParamSpec, TypeVar

import psycopg
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from zope.interface import implementer

from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader, Transaction
from pkgrepo.interfaces.catalog import NotNow
from pkgrepo.storage.catalog.engine.commands import CommandQueue
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.generation import GenerationPin
from pkgrepo.storage.catalog.engine.schema import Migration, load_migrations
from pkgrepo.storage.pools import Pool

from .batches import PostgresBatches
from .changes import Changes
from .failures import SERVER_ERRORS, explain
from .nodes import Nodes
from .schema import upgrade
from .server_clock import ServerClock
from .sessions import Address, open_reader, open_writer
from .transactions import PostgresReader, Snapshots, source_of

T = TypeVar("T")
P = ParamSpec("P")

LOOKS: Final = 6  # threads for short queries, each with a connection
SCANS: Final = 3  # threads for longer ones


@implementer(ICatalog)
class PostgresCatalog:
    """
    Queries and commands run on threads; nothing is answered in the reactor's thread.

    Each call reads one snapshot. A commit is visible to every ``look`` on all nodes after its ``write`` has returned.
    ``nodes`` are the other processes that use the database.
    """

    def __init__(
        self, address: Address, *, reactor: IReactorFromThreads, migrations: Sequence[Migration] | None = None
    ) -> None:
        self._address = address
        self._migrations = migrations
        self.nodes = Nodes(address, reactor)
        self._changes = Changes(address, on_news=self.nodes.received)
        self._writer = CommandQueue(PostgresBatches(address, self._changes.committed), reactor)
        self._lookers = Pool(reactor, "catalog-look", LOOKS)
        self._scanners = Pool(reactor, "catalog", SCANS)
        self._idle: list[PostgresReader] = []
        self._snapshots = Snapshots()
        self._moment = GenerationPin(self._read_generation)
        self._running = False

    async def start(self) -> None:
        """
        Create or upgrade the database, and connect.

        :raises CatalogUnusable: it is from a newer version or another program, or the server cannot be reached
        """
        self._scanners.start()
        self._lookers.start()
        try:
            await self._scanners(self._open)
        except BaseException:
            await self._stop_threads()
            raise
        self._writer.start()
        self.nodes.start()
        self._running = True

    @property
    def clock(self) -> ServerClock:
        """The clock of the database's server, which all nodes share."""
        return self._changes.server_clock

    async def wait_idle(self) -> bool:
        """Wait until all accepted commands and queries are done. Returns whether there were any."""
        return any([await self._writer.wait_idle(), await self._lookers.wait_idle(), await self._scanners.wait_idle()])

    async def stop(self) -> None:
        """Finish all accepted commands, then disconnect."""
        if not self._running:
            return
        self.nodes.mute()
        self._running = False
        await self._writer.drain()
        await self.nodes.stop()
        await self._scanners(self._changes.stop)
        await self._stop_threads()
        for each in self._idle:
            each.connection.close()
        self._idle.clear()
        await self._writer.close()

    def moment(self) -> GenerationPin:
        """Return a context manager, for code that does not wait, within which ``generation`` is read once."""
        return self._moment

    def generation(self) -> int:
        """Return a number that changes when a commit of any node has become visible, see L{changes}."""
        pinned = self._moment.pinned
        return self._read_generation() if pinned is None else pinned

    def look(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a query of a few indexed look-ups on a thread."""
        return self._lookers(self._read, source_of(query), lambda reader: query(reader, *args, **kwargs))

    def peek(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T | NotNow:  # noqa: ARG002 - the interface has them
        """Return ``NOT_NOW``: the server must be waited for."""
        return NOT_NOW

    def scan(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a longer query on a thread."""
        return self._scanners(self._read, source_of(query), lambda reader: query(reader, *args, **kwargs))

    def write(
        self, command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """Run a command in a transaction, and return its result when it is durable. Cancelling drops the result."""
        return self._writer.submit(command, *args, **kwargs)

    async def renew_statistics(self) -> bool:
        """Return False: the server's autovacuum renews them."""
        return False

    def _read_generation(self) -> int:
        if not self._running:
            raise RuntimeError("the catalog does not run")
        return self._changes()

    def _open(self) -> None:
        try:
            with open_writer(self._address) as session:
                upgrade(session, self._migrations or load_migrations())
        except psycopg.Error as error:
            raise CatalogUnusable(f"the database cannot be used: {type(error).__name__}") from error
        self._changes.start()

    async def _stop_threads(self) -> None:
        await self._lookers.stop()
        await self._scanners.stop()

    def _read(self, code: object, query: Callable[[Reader], T]) -> T:
        """Run a query on a connection of this thread; again on a new one if an idle one turns out to be lost."""
        try:
            while True:
                reader, is_new = self._idle_reader()
                try:
                    result = self._snapshots.run(reader, code, query)
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
        except SERVER_ERRORS as error:
            raise explain(error) from error

    def _idle_reader(self) -> tuple[PostgresReader, bool]:
        try:
            return self._idle.pop(), False  # without a check before: another thread could take the last one in between
        except IndexError:
            return PostgresReader(open_reader(self._address)), True
