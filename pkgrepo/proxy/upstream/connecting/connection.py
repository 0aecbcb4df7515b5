"""Connections to upstreams: the limits of an answer's head, which Twisted's client does not have, and how they end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure

HEAD_BYTES = 64 * 1024  # of all heads that answer one request; signed URLs and policies need a few KiB
HEAD_LINES = 300
RECEIVED = (
    256 * 1024
)  # bytes read from a connection at once; with Twisted's 64 KiB large files take a tenth more CPU time
LINE_BYTES = 16 * 1024  # of Twisted's client, which ends the connection without a reason at a longer one


class HeadTooLarge(Exception):  # noqa: N818 - named for what happened
    """The head of an answer exceeds a limit."""


class Connections:
    """The open connections of one upstream."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()
        self._closed: Deferred[None] | None = None

    async def close(self) -> None:
        """Abort all connections, now and those that are made later. Returns when all have ended."""
        if self._closed is None:
            self._closed = Deferred()
            for connection in list(self._open):
                connection.loseConnection()
        if self._open:
            await self._closed

    def add(self, connection: Connection) -> None:
        """Note a new connection."""
        self._open.add(connection)
        if self._closed is not None:
            connection.loseConnection()

    def remove(self, connection: Connection) -> None:
        """Note the end of a connection."""
        self._open.discard(connection)
        if self._closed is not None and not self._open and not self._closed.called:
            self._closed.callback(None)


class Connection(ProtocolWrapper):
    """
    The transport of Twisted's HTTP client, above TLS.

    It always ends by an abort: an orderly end of TLS waits for the peer, and an upstream may never answer.
    """

    def __init__(self, factory: ConnectionFactory, wrapped: Any) -> None:
        super().__init__(factory, wrapped)
        self._head = _HeadMeter()
        self._refused = False

    def makeConnection(self, transport: Any) -> None:
        """Take the connection, and read it in larger pieces if it is TCP: each piece of a body costs as much."""
        if hasattr(transport, "bufferSize"):
            transport.bufferSize = RECEIVED
        super().makeConnection(transport)  # type: ignore[no-untyped-call]

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """Send the head of a request: the head of an answer follows."""
        self._head = _HeadMeter()
        self.transport.writeSequence(data)  # type: ignore[union-attr]

    def dataReceived(self, data: bytes) -> None:
        """Pass bytes on, unless they exceed the limits of a head."""
        if not self._head.ended:
            self._head.feed(data)
            if self._head.is_too_large:
                self._refused = True
                self.loseConnection()
                return
        super().dataReceived(data)  # type: ignore[no-untyped-call]

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Pass the end on, with the reason if it was ours."""
        self.connected = 0
        super().connectionLost(Failure(HeadTooLarge()) if self._refused else reason)  # type: ignore[no-untyped-call]

    def stopProducing(self) -> None:
        """End the connection; the reader of a body wants no more of it."""
        self.loseConnection()

    def loseConnection(self) -> None:
        """End the connection at once; the pool also calls this for one that the upstream has ended."""
        if self.connected:
            self.disconnecting = 1
            self.transport.abortConnection()  # type: ignore[union-attr]


class ConnectionFactory(WrappingFactory[Connection]):
    """Makes connections and notes them."""

    protocol = Connection
    noisy = False

    def __init__(self, wrapped: IProtocolFactory, connections: Connections) -> None:
        wrapped.noisy = False  # type: ignore[attr-defined]  # Twisted's client logs the start of each connection
        super().__init__(wrapped)  # type: ignore[no-untyped-call]
        self._connections = connections

    def registerProtocol(self, p: Connection) -> None:
        """Note a connection."""
        self._connections.add(p)

    def unregisterProtocol(self, p: Connection) -> None:
        """Note its end."""
        self._connections.remove(p)


class _HeadMeter:
    """Measures heads of answers up to the final one: those of status 1xx precede it (RFC 9110 section 15.2)."""

    def __init__(self) -> None:
        self.ended = False
        self._line = b""
        self._bytes = 0
        self._lines = 0
        self._longest = 0  # bytes of the longest line without its end
        self._informational: bool | None = None  # None before the status line

    @property
    def is_too_large(self) -> bool:
        return self._bytes > HEAD_BYTES or self._lines > HEAD_LINES or self._longest > LINE_BYTES

    def feed(self, data: bytes) -> None:
        start = 0
        while not (self.ended or self.is_too_large):
            end = data.find(b"\n", start)
            if end < 0:
                self._line += data[start:]
                self._bytes += len(data) - start
                self._longest = max(self._longest, len(self._line))
                return
            self._longest = max(self._longest, len(self._line) + end - start)
            self._end_line((self._line + data[start:end]).removesuffix(b"\r"))
            self._bytes += end + 1 - start
            self._lines += 1
            self._line, start = b"", end + 1

    def _end_line(self, line: bytes) -> None:
        if self._informational is None:
            self._informational = _is_informational(line)
        elif not line:
            self.ended = not self._informational
            self._informational = None


def _is_informational(status_line: bytes) -> bool:
    """Whether Twisted's client goes on to another head after this status line."""
    try:
        return 100 <= int(status_line.split(b" ", 2)[1]) < 200
    except (IndexError, ValueError):
        return False
