"""The catalog in a PostgreSQL database, for any number of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import psycopg
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from zope.interface import implementer

from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader, Transaction
from pkgrepo.interfaces.catalog import NotNow
from pkgrepo.storage.catalog.engine.commands import CommandQueue
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.generation import GenerationPin
from pkgrepo.storage.catalog.engine.schema import Schema, load_schema
from pkgrepo.storage.catalog.postgresql.changes import ServerClock
from pkgrepo.storage.catalog.postgresql.sessions import SERVER_ERRORS, explain

from .batches import PostgresBatches
from .changes import Changes
from .nodes import Nodes
from .readers import Readers
from .replica import Declined, Replica, identity_of
from .schema import upgrade
from .sessions import PACE, Address, Pace, open_reader, open_writer
from .transactions import PostgresReader

T = TypeVar("T")
P = ParamSpec("P")


@implementer(ICatalog)
class PostgresCatalog:
    """
    Queries and commands run on threads; nothing is answered in the reactor's thread.

    Each call reads one snapshot. A commit is visible to every ``look`` on all nodes after its ``write`` has returned.
    ``nodes`` are the other processes that use the database. Queries go to a replica, if it has its address and that has
    the newest commit, see L{replica}.
    """

    def __init__(
        self,
        address: Address,
        *,
        reactor: IReactorFromThreads,
        replica: Address | None = None,
        schema: Schema | None = None,
        pace: Pace = PACE,
    ) -> None:
        self._address = address
        self._schema = schema
        self.nodes = Nodes(address, reactor)
        self._changes = Changes(address, on_news=self.nodes.received, pace=pace)
        self._writer = CommandQueue(PostgresBatches(address, self._changes.committed, pace), reactor)
        self._primary = Readers(lambda: PostgresReader(open_reader(address)), reactor)
        self._replica = None if replica is None else Replica(replica, reactor, pace)
        self._pin = GenerationPin(self._read_generation)
        self._running = False

    async def start(self) -> None:
        """
        Create or upgrade the database, and connect.

        :raises CatalogUnusable: it is from a newer version or another program, or the server cannot be reached
        """
        for readers in self._readers():
            readers.start()
        try:
            await self._primary.pool(brief=False)(self._open)
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
        return any([await self._writer.wait_idle(), *[await each.wait_idle() for each in self._readers()]])

    async def stop(self) -> None:
        """Finish all accepted commands, then disconnect."""
        if not self._running:
            return
        self.nodes.mute()
        self._running = False
        await self._writer.drain()
        await self.nodes.stop()
        await self._primary.pool(brief=False)(self._changes.stop)
        await self._stop_threads()
        await self._writer.close()

    def pinned(self) -> GenerationPin:
        """Return a context manager, for code that does not wait, within which ``generation`` is read once."""
        return self._pin

    def generation(self) -> int:
        """Return a number that changes when a commit of any node has become visible, see L{changes}."""
        pinned = self._pin.pinned
        return self._read_generation() if pinned is None else pinned

    def look(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a query of a few indexed look-ups on a thread."""
        return self._query(query, lambda reader: query(reader, *args, **kwargs), brief=True)

    def peek(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T | NotNow:  # noqa: ARG002 - the interface has them
        """Return ``NOT_NOW``: the server must be waited for."""
        return NOT_NOW

    def scan(self, query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a longer query on a thread."""
        return self._query(query, lambda reader: query(reader, *args, **kwargs), brief=False)

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
                upgrade(session, self._schema or load_schema())
                if self._replica is not None:
                    self._replica.identity = identity_of(session)
        except psycopg.Error as error:
            raise CatalogUnusable(f"the database cannot be used: {type(error).__name__}") from error
        self._changes.start()

    def _readers(self) -> list[Readers]:
        return [self._primary] if self._replica is None else [self._replica.readers, self._primary]

    async def _stop_threads(self) -> None:
        if self._replica is not None:
            await self._replica.stop()  # whose callers then ask the primary
        await self._primary.stop()

    def _query(self, query: Callable[..., object], call: Callable[[Reader], T], *, brief: bool) -> Deferred[T]:
        commit = None if self._replica is None or not self._replica.is_asked else self._changes.known_commit()
        if self._replica is None or commit is None:
            return self._primary.pool(brief=brief)(self._read, query, call)
        return Deferred.fromCoroutine(self._ask(self._replica, commit, query, call, brief=brief))

    async def _ask(
        self, replica: Replica, commit: int, query: Callable[..., object], call: Callable[[Reader], T], *, brief: bool
    ) -> T:
        response = await replica.ask(query, call, commit, brief=brief)
        if isinstance(response, Declined):
            return await self._primary.pool(brief=brief)(self._read, query, call)
        return response

    def _read(self, query: Callable[..., object], call: Callable[[Reader], T]) -> T:
        try:
            return self._primary.read(query, call)
        except SERVER_ERRORS as error:
            raise explain(error) from error
