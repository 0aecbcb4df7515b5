"""
Protocols: the connection as requests and answers use it, and the server as they and the channel use it.

L{pkgrepo.http.channel} and L{pkgrepo.http.site} implement them. These import requests and answers, and not vice versa.
"""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet.defer import Deferred

from pkgrepo.http.reading.head import TakeCredentials
from pkgrepo.http.reading.proxies import Addresses, TrustedProxies
from pkgrepo.http.reading.read_scheduling import ReadQueue

from .limits import HttpLimits
from .repeats import Repeats


class Server(Protocol):
    """What all connections of one server share."""

    reactor: Any
    trusted_proxies: TrustedProxies
    repeats: Repeats

    def seconds(self) -> float:
        """The reactor's clock."""

    def in_thread(self, call: Any, *arguments: Any) -> Deferred[Any]:
        """Run a function in the pool of threads that waits for disks."""

    def next_request_id(self) -> bytes:
        """An id that no other request of this or any other process has."""

    def log_request(self, request: Any) -> None:
        """Write the access log's line for a request whose answer is complete, or whose client has left."""


class ChannelServer(Server, Protocol):
    """What a channel uses of the server beside what requests use."""

    limits: HttpLimits
    read_queue: ReadQueue
    draining: bool  # the server is about to stop: every answer closes its connection
    channels: set[Any]
    take_credentials: TakeCredentials

    def make_room(self) -> bool:
        """Whether one more connection may be open; closes idle ones when there are too many."""

    def forget(self, channel: Any) -> None:
        """Remove a channel whose connection has ended."""

    def common_lines(self) -> bytes:
        """The header lines that all answers of one second have in common."""

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


class Connection(Protocol):
    """The server's side of one connection."""

    transport: Any
    socket: Any  # the TCP transport, also below TLS
    transfer: DirectTransfer | None
    addressed: tuple[object, Addresses] | None  # the last header fields whose addresses were asked for, with these

    @property
    def site(self) -> Server:
        """The server; it outlives the connection."""

    @property
    def secure(self) -> bool:
        """Whether the connection has TLS that ends in this process."""

    @property
    def direct(self) -> bool:
        """Whether bytes reach the socket unchanged."""

    @property
    def blocked(self) -> bool:
        """Whether the transport's write buffer is full."""

    def getPeer(self) -> Any:
        """The client's address."""

    def getHost(self) -> Any:
        """Our address."""

    def common_fields(self, request_id: bytes) -> bytes:
        """The header fields of every answer, and the empty line after them."""

    def send(self, data: bytes) -> None:
        """Write at once if the kernel takes it, else when the socket is ready."""

    def send_both(self, head: bytes, body: bytes) -> None:
        """C{send} both; what the kernel takes at once of a long body is not copied before."""

    def send_now(self, head: bytes, body: bytes | memoryview) -> int:
        """Give the kernel what it takes at once of both. Returns how many bytes it took."""

    def write(self, data: bytes) -> None:
        """Write when the socket is ready."""

    def hand_over(self, transfer: DirectTransfer) -> None:
        """Make ``transfer`` the producer of the transport, until C{take_back}; only if this is ``direct``."""

    def take_back(self) -> None:
        """Be the producer of the transport again."""

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` write the answer as fast as the client reads it."""

    def unregisterProducer(self) -> None:
        """Remove the producer, which has written everything."""

    def requestDone(self, request: Any) -> None:
        """End the request, whose answer is written."""
