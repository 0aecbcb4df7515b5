"""TCP servers in the test process that answer requests with bytes of a test's choice, or as a tunnel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol

reactor: Any = _reactor


class RawServer:
    """
    A server on 127.0.0.1.

    ``answer`` gets the connection and the head of each request. ``heads`` are those so far.
    """

    def __init__(self, answer: Callable[[RawConnection, str], None]) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.open: set[RawConnection] = set()
        factory = Factory.forProtocol(lambda: RawConnection(self))
        factory.noisy = False
        self._port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.url = f"http://127.0.0.1:{self._port.getHost().port}"

    async def stop(self) -> None:
        for connection in list(self.open):
            connection.transport.abortConnection()
        await maybeDeferred(self._port.stopListening)


class RawConnection(Protocol):
    """One connection; ``write`` and ``end`` are for answers, ``relay`` makes it a tunnel."""

    def __init__(self, server: RawServer) -> None:
        self._server = server
        self._received = b""
        self._far: Protocol | None = None

    def connectionMade(self) -> None:
        self._server.open.add(self)

    def dataReceived(self, data: bytes) -> None:
        if self._far is not None:
            self._far.transport.write(data)
            return
        self._received += data
        while self._far is None and b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            self._server.heads.append(head.decode("latin-1"))
            self._server.answer(self, self._server.heads[-1])

    def connectionLost(self, reason: object = None) -> None:
        self._server.open.discard(self)
        if self._far is not None:
            self._far.transport.abortConnection()

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def end(self) -> None:
        self.transport.loseConnection()

    def relay(self, port: int, greeting: bytes) -> None:
        """Connect to a port of this machine, send ``greeting``, and pass bytes in both directions from then on."""
        connecting: Deferred[Any] = connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), _FarEnd(self))

        def connected(far: Protocol) -> None:
            self._far = far
            self.write(greeting)

        connecting.addCallback(connected)


class _FarEnd(Protocol):
    def __init__(self, near: RawConnection) -> None:
        self._near = near

    def dataReceived(self, data: bytes) -> None:
        self._near.write(data)

    def connectionLost(self, reason: object = None) -> None:
        self._near.end()
