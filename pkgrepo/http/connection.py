"""
The writing half of a connection, with back-pressure from the client to the producer of the response.

The protocol ``Server`` is the site as connections use it; ``site`` imports them, and not vice versa.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, ISSLTransport, ITCPTransport
from twisted.internet.protocol import Protocol as TwistedProtocol
from zope.interface import implementer

from pkgrepo.http.reading.head import TakeCredentials
from pkgrepo.http.reading.proxies import Addresses, TrustedProxies
from pkgrepo.http.reading.read_scheduling import ReadQueue
from pkgrepo.http.twisted_internals import PullToPush, is_plain_tcp, socket_of, unsent

from .limits import HttpLimits
from .repeats import Repeats

COPIED = 8 * 1024  # bytes of a body; up to this a copy is cheaper than to give the kernel two buffers


class Server(Protocol):
    """The site, as requests, responses and channels use it; it outlives all connections."""

    reactor: Any
    trusted_proxies: TrustedProxies
    repeats: Repeats
    limits: HttpLimits
    read_queue: ReadQueue
    draining: bool  # the server is about to stop: every response closes its connection
    channels: set[Any]
    take_credentials: TakeCredentials
    request_class: Callable[..., Any]  # of requests; it gets the connection, the request line and the header fields

    def seconds(self) -> float:
        """Return the time of the reactor's clock."""

    def in_thread(self, call: Any, *arguments: Any) -> Deferred[Any]:
        """Run a function in the pool of threads that waits for disks."""

    def next_request_id(self) -> bytes:
        """Return an id that no other request of this or any other process has."""

    def log_request(self, request: Any) -> None:
        """Write the access log's line for a request whose response is complete, or whose client has left."""

    def make_room(self) -> bool:
        """Return whether one more connection may be open; closes idle ones when there are too many."""

    def forget(self, channel: Any) -> None:
        """Remove a channel whose connection has ended."""

    def common_lines(self) -> bytes:
        """Return the header lines that all responses of one second have in common."""

    def log_refused(self, channel: Any, status: int, sentence: str) -> None:
        """Write the access log's line for a malformed head."""


class DirectTransfer(Protocol):
    """A body that is written to the socket without the channel; a pull producer of the TCP transport."""

    @property
    def waits_for_client(self) -> bool:
        """Whether it waits for the socket; otherwise a thread is reading the disk."""

    def resumeProducing(self) -> None:
        """Write some, since the socket is writable."""

    def stopProducing(self) -> None:
        """End, since the client has left."""


@implementer(IPushProducer)
class Connection(TwistedProtocol):
    """
    The writing half of a connection; ``Channel`` is the reading half.

    It is registered as the producer of its transport, learns so when the write buffer is full, and passes that on to
    the producer of the present response. ``direct`` says whether bytes reach the socket unchanged.
    """

    persistent: bool  # whether the connection stays open after the present response
    transport: ITCPTransport  # from ``makeConnection`` on, and so whenever anything is called
    site: Server

    def __init__(self) -> None:
        self.secure = False
        self.direct = False
        self.socket: Any = None  # the TCP transport, also below TLS
        self.transfer: DirectTransfer | None = None
        self.addressed: tuple[object, Addresses] | None = None  # the last fields whose addresses were asked for
        self._host: Any = None
        self._blocked = False  # the transport's write buffer is full
        self._producer: Any = None
        self._producer_streams = True

    def connectionMade(self) -> None:
        """Find out what kind of transport this is."""
        transport: Any = self.transport
        self.socket = socket_of(transport)
        self.direct = is_plain_tcp(transport)
        self.secure = ISSLTransport(transport, None) is not None
        if ITCPTransport.providedBy(self.socket):
            self.socket.setTcpNoDelay(True)
            self.socket.setTcpKeepAlive(True)
        transport.registerProducer(self, True)

    def getPeer(self) -> Any:
        """The client's address."""
        return self.transport.getPeer()

    def getHost(self) -> Any:
        """Our address, which stays the same."""
        if self._host is None:
            self._host = self.transport.getHost()
        return self._host

    def send(self, data: bytes) -> None:
        """
        Write at once if the kernel takes it, else when the socket is ready.

        Through the reactor a write costs two changes of its interest in the socket, and one more turn.
        """
        if self.direct and not unsent(self.socket) and self.socket.connected:
            sent = self.socket.writeSomeData(data)
            if isinstance(sent, int):  # else the transport gets the same error, and handles it
                if sent == len(data):
                    return
                data = data[sent:]
        self.transport.write(data)

    def send_both(self, head: bytes, body: bytes) -> None:
        """L{send} both; what the kernel takes at once of a long body is not copied before."""
        if len(body) <= COPIED:
            self.send(head + body)
            return
        sent = self.send_now(head, body)
        if sent < len(head):
            self.transport.writeSequence([head[sent:], body])
        elif sent < len(head) + len(body):
            self.transport.write(body[sent - len(head) :])

    def send_now(self, head: bytes, body: bytes | memoryview) -> int:
        """Give the kernel what it takes at once of both. Returns how many bytes it took."""
        if self.direct and not unsent(self.socket) and self.socket.connected:
            with suppress(OSError):  # it takes none, or the next write gets the same error
                taken: int = self.socket.socket.sendmsg((head, body))
                return taken
        return 0

    def hand_over(self, transfer: DirectTransfer) -> None:
        """Make ``transfer`` the producer of the transport, until ``take_back``; only if this is ``direct``."""
        self.transfer = transfer
        self.socket.unregisterProducer()
        self.socket.registerProducer(transfer, False)

    def take_back(self) -> None:
        """Be the producer of the transport again."""
        self.transfer = None
        self.socket.unregisterProducer()
        self.socket.registerProducer(self, True)

    def write_now(self, data: bytes) -> None:
        """Write at once what the kernel takes of a piece of a body, however long, and the rest when it is ready."""
        sent = self.send_now(b"", data)
        if sent < len(data):
            self.transport.write(data[sent:] if sent else data)

    def write(self, data: bytes) -> None:
        """Write when the socket is ready."""
        self.transport.write(data)

    def writeSequence(self, data: list[bytes]) -> None:
        """Write when the socket is ready."""
        self.transport.writeSequence(data)

    def unsent(self) -> int:
        """How many bytes the kernel has not taken yet."""
        return unsent(self.socket) if self.socket is not None else 0

    @property
    def blocked(self) -> bool:
        """Whether the transport's write buffer is full."""
        return self._blocked

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` write the response as fast as the client reads it."""
        if self._producer is not None:
            raise RuntimeError("this connection has a producer already")
        self._producer_streams = streaming
        self._producer = producer if streaming else PullToPush(producer, self)
        if not streaming:
            self._producer.startStreaming()
        elif self._blocked:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        """Remove the producer, which has written everything."""
        producer, self._producer = self._producer, None
        if producer is not None and not self._producer_streams:
            producer.stopStreaming()

    def pauseProducing(self) -> None:
        """Pause the producer: the transport's write buffer is full."""
        self._blocked = True
        if self._producer is not None:
            self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume the producer: the transport's write buffer is empty."""
        self._blocked = False
        if self._producer is not None:
            self._producer.resumeProducing()

    def stopProducing(self) -> None:
        """Stop the producer: the connection has ended."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.stopProducing()

    def common_fields(self, request_id: bytes) -> bytes:
        """Return the header fields of every response, and the empty line after them."""
        raise NotImplementedError

    def requestDone(self, request: Any) -> None:
        """End the request, whose response is written."""
        raise NotImplementedError
