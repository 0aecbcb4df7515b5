"""
Reads from a replica, which takes queries off the primary.

A replica replays the commits of the primary in their order. It answers a query only if it has replayed the newest
commit that this process knows of, so that no reader misses what the primary would show:

==============================  ====================================================================================
what happens                    who answers
==============================  ====================================================================================
it has replayed that commit     the replica; it is asked for its last commit once for each new one and connection
it lags                         the primary, and for ``LAG_S`` without asking the replica
it fails, or says nothing       the primary, and for ``away_s`` without asking the replica
it is a replica of another      the primary
database, or has been promoted
this process has lost touch     the primary, because it may not know of the newest commit (``Changes.known_commit``)
with the primary
==============================  ====================================================================================
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import number

from .readers import Readers
from .sessions import PACE, STATEMENT_TIMEOUT_MS, Address, Pace, Session, open_replica
from .transactions import PostgresReader

T = TypeVar("T")
log = Logger()

LAG_S: Final = 0.02  # seconds
SCAN_S: Final = (
    STATEMENT_TIMEOUT_MS / 1000 + 5
)  # seconds for a long one, which has to be so slow on the primary as well
LAST_COMMIT: Final = "SELECT commits FROM catalog_state"
IDENTITY: Final = """
SELECT (SELECT system_identifier FROM pg_control_system()), oid FROM pg_database WHERE datname = current_database()
"""


@frozen
class Declined:
    """The replica does not answer this query."""


DECLINED: Final = Declined()


class _Behind(Exception):  # noqa: N818 - named for what happened
    """It has not replayed a commit yet."""


class _AnotherDatabase(psycopg.OperationalError):
    """It is no replica of this one."""


class _Unwanted(Exception):  # noqa: N818 - named for what happened
    """The query is not waited for any more."""


class _Query:
    """A query that has the connection of one of the threads, from ``begin`` to ``end``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._ended = False

    def begin(self, connection: Session) -> None:
        """Take a connection, on its thread. :raises _Unwanted: it has ended"""
        with self._lock:
            if self._ended:
                raise _Unwanted
            self._close()  # of another connection, which was lost
            # A descriptor of its own: the thread may close the connection's at any time.
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.dup(connection.fileno()))

    def give_up(self) -> None:
        """Break the connection, so that its thread does not wait for ever."""
        with self._lock, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Need the connection no more."""
        with self._lock:
            self._ended = True
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class _ReplicaReader(PostgresReader):
    """A connection, and the newest commit that its server is known to have replayed."""

    replayed = -1


class Replica:
    """The replica at ``address``; ``identity`` of the primary is set before it is asked."""

    def __init__(
        self, address: Address, reactor: Any, pace: Pace = PACE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.identity: tuple[object, ...] | None = None
        self.readers = Readers(self._connect, reactor, "replica")
        self._address = address
        self._reactor = reactor
        self._pace = pace
        self._clock = clock
        self._pause_ends = 0.0
        self._running: set[_Query] = set()
        self._failures = FailureLog(log, "the replica cannot be read; the primary is read instead")

    async def stop(self) -> None:
        """Give up the queries that run, and disconnect."""
        for each in self._running:
            each.give_up()
        await self.readers.stop()

    @property
    def is_asked(self) -> bool:
        """Whether there is no reason yet why it would not answer."""
        return self._clock() >= self._pause_ends

    async def ask(
        self, query: Callable[..., object], call: Callable[[Reader], T], commit: int, *, brief: bool
    ) -> T | Declined:
        """
        Make a ``call`` of a query, which is ``brief`` if it is of a few look-ups, after this ``commit``.

        A caller that is cancelled drops the result.
        """
        limit_s = self._pace.look_s if brief else SCAN_S
        running = _Query()

        def prepare(reader: PostgresReader) -> None:
            running.begin(reader.connection)
            assert isinstance(reader, _ReplicaReader)
            _await_commit(reader, commit)

        self._running.add(running)
        try:
            work: Deferred[T] = self.readers.pool(brief=brief)(self.readers.read, query, call, prepare)
            response = await within(limit_s, work, self._reactor, f"it said nothing for {limit_s:g} s")
        except _Behind:
            self._pause(LAG_S)
        except (psycopg.Error, TimedOut) as error:
            running.give_up()
            self._pause(self._pace.away_s)
            self._failures.failed(error)
        else:
            self._failures.succeeded()
            return response
        finally:
            self._running.discard(running)
            running.end()
        return DECLINED

    def _pause(self, seconds: float) -> None:
        self._pause_ends = max(self._pause_ends, self._clock() + seconds)

    def _connect(self) -> _ReplicaReader:
        connection = open_replica(self._address)
        try:
            if identity_of(connection) != self.identity:
                raise _AnotherDatabase("it is a replica of another database")
        except BaseException:
            connection.close()
            raise
        return _ReplicaReader(connection)


def identity_of(connection: Session) -> tuple[object, ...] | None:
    """What a database has in common with its replicas only."""
    return connection.execute(IDENTITY).fetchone()


def _await_commit(reader: _ReplicaReader, commit: int) -> None:
    """:raises _Behind: the server of this connection has not replayed a commit"""
    if reader.replayed < commit:
        reader.replayed = number(reader, LAST_COMMIT)
        if reader.replayed < commit:
            raise _Behind
