"""The connections of one user, such as an upstream: those that are open, and which of them are idle."""

from __future__ import annotations

from collections.abc import Hashable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Factory

from pkgrepo.outbound.connection import Connection

KEEP_ALIVE_S = 45.0  # for idle connections; many servers close them after 60


class Connections:
    """Keeps at most ``most`` idle connections, for ``idle_s``, of each key, the origin or the proxy they lead to."""

    def __init__(self, reactor: IReactorTime, most: int, idle_s: float = KEEP_ALIVE_S) -> None:
        self._reactor = reactor
        self._most = most
        self._idle_s = idle_s
        self._open: set[Connection] = set()
        self._idle: dict[Hashable, list[Connection]] = {}
        self._expiry: IDelayedCall | None = None
        self._keeps = True
        self._closed: Deferred[None] | None = None

    def take(self, key: Hashable) -> Connection | None:
        """The connection with this key that was used last, if one is idle."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if not idle:
                del self._idle[key]
            if not connection.ended:
                return connection
        return None

    def factory(self, key: Hashable) -> Factory:
        """A factory of one connection with this key."""
        return _ConnectionFactory(self, key)

    def keep_none(self) -> None:
        """Close those that are idle, now and later."""
        self._keeps = False
        for each in [connection for idle in self._idle.values() for connection in idle]:
            each.abort()
        self._idle.clear()
        self._stop_expiry()

    async def close(self) -> None:
        """Abort all connections, now and those that are made later. Returns when all have ended."""
        self.keep_none()
        if self._closed is None:
            self._closed = Deferred()
            for connection in list(self._open):
                connection.abort()
        if self._open:
            await self._closed

    def build(self, key: Hashable) -> Connection:
        """A connection that is about to be made."""
        connection = Connection(on_made=self._add, on_idle=self._put, on_end=self._remove)
        connection.key = key
        return connection

    def _add(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._closed is not None:
            connection.abort()

    def _put(self, connection: Connection) -> None:
        idle = self._idle.setdefault(connection.key, [])
        if not self._keeps or len(idle) >= self._most:
            if not idle:
                del self._idle[connection.key]
            connection.abort()
            return
        connection.idle_since = self._reactor.seconds()
        idle.append(connection)
        if self._expiry is None:
            self._expiry = self._reactor.callLater(self._idle_s, self._expire)

    def _remove(self, connection: Connection) -> None:
        self._open.discard(connection)
        idle = self._idle.get(connection.key, [])
        if connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[connection.key]
        if not self._idle:
            self._stop_expiry()
        if self._closed is not None and not self._open and not self._closed.called:
            self._closed.callback(None)

    def _expire(self) -> None:
        """Close those that were idle for too long; one timer is for all."""
        self._expiry = None
        now = self._reactor.seconds()
        idle = [connection for each in self._idle.values() for connection in each]
        for connection in idle:
            if now >= connection.idle_since + self._idle_s:
                self._idle[connection.key].remove(connection)
                connection.abort()
        self._idle = {key: left for key, left in self._idle.items() if left}
        oldest = min((each.idle_since for left in self._idle.values() for each in left), default=None)
        if oldest is not None:
            self._expiry = self._reactor.callLater(max(oldest + self._idle_s - now, 0.0), self._expire)

    def _stop_expiry(self) -> None:
        expiry, self._expiry = self._expiry, None
        if expiry is not None:
            expiry.cancel()


class _ConnectionFactory(Factory):
    """Makes one connection."""

    noisy = False

    def __init__(self, connections: Connections, key: Hashable) -> None:
        self._connections = connections
        self._key = key

    def buildProtocol(self, addr: object) -> Connection:  # noqa: ARG002 - of the base class
        """Make the connection."""
        return self._connections.build(self._key)
