"""
The connection and the server as a request and its answer use them.

L{pkgrepo.http.channel} and L{pkgrepo.http.site} implement these protocols; they import requests and answers, which so
need not import them.
"""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet.defer import Deferred

from pkgrepo.http.reading.proxies import TrustedProxies


class Server(Protocol):
    """What all connections of one server share."""

    reactor: Any
    trusted_proxies: TrustedProxies

    def seconds(self) -> float:
        """The reactor's clock."""

    def in_thread(self, call: Any, *arguments: Any) -> Deferred[Any]:
        """Run a function in the pool of threads that waits for disks."""

    def next_request_id(self) -> bytes:
        """An id that no other request of this or any other process has."""

    def log(self, request: Any) -> None:
        """Write the access log's line for a request whose answer is complete, or whose client has left."""


class DirectTransfer(Protocol):
    """A body that is written to the socket past the channel."""

    @property
    def waits_for_client(self) -> bool:
        """Whether the client's socket is full; otherwise a thread is reading the disk."""


class Connection(Protocol):
    """The server's side of one connection."""

    transport: Any
    socket: Any  # the TCP transport, also below TLS
    transfer: DirectTransfer | None

    @property
    def site(self) -> Server:
        """The server; it outlives the connection."""

    @property
    def secure(self) -> bool:
        """Whether the client's bytes come through TLS of ours."""

    @property
    def direct(self) -> bool:
        """Whether bytes reach the socket as they are written."""

    @property
    def blocked(self) -> bool:
        """Whether the transport holds enough unsent bytes."""

    def getPeer(self) -> Any:
        """The address of the other end."""

    def getHost(self) -> Any:
        """The address of our end."""

    def common_fields(self, request_id: bytes) -> bytes:
        """The header fields that every answer has, and the empty line after them."""

    def send(self, data: bytes) -> None:
        """Write at once if the kernel takes it, else when the socket is ready."""

    def write(self, data: bytes) -> None:
        """Write when the socket is ready."""

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` write the answer as fast as the client reads it."""

    def unregisterProducer(self) -> None:
        """The producer has written everything."""

    def requestDone(self, request: Any) -> None:
        """The answer is written; the next request may begin."""
