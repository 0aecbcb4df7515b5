"""A site on a real TCP socket, and blocking clients in threads."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from pkgrepo.http.site import Site, make_site
from pkgrepo.http.tls import ServerCertificate, tls_factory
from tests.support.memory_connection import Handler, HandlerResource
from tests.support.timeouts import TIMEOUT_S

T = TypeVar("T")
reactor: Any = _reactor


class Server:
    """A listening site; ``stop`` closes its port and connections."""

    def __init__(self, handler: Handler, certificate: ServerCertificate | None = None, **options: Any) -> None:
        self.site: Site = make_site(HandlerResource(handler), reactor=reactor, **options)
        factory = self.site if certificate is None else tls_factory(certificate, self.site, reactor)
        self.port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.address = ("127.0.0.1", self.port.getHost().port)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.address[1]}"

    async def stop(self) -> None:
        await self.port.stopListening()
        if self.site.channels:
            done = self.site.drain(0)
            await done
        # The reactor removes a closed socket in its next iteration.
        await turn()


def turn() -> Deferred[None]:
    """Return a Deferred that fires in the reactor's next iteration."""
    fired: Deferred[None] = Deferred()
    reactor.callLater(0, fired.callback, None)
    return fired


async def blocking(call: Callable[..., T], *args: Any) -> T:
    """Run a blocking client in a thread."""
    result: T = await deferToThread(call, *args)
    return result


def connect(server: Server) -> socket.socket:
    """Connect a socket, with TLS if the server has it; the certificate is not checked."""
    client = socket.create_connection(server.address, timeout=TIMEOUT_S)
    if server.url.startswith("https"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(client)
    return client


def talk(address: tuple[str, int], data: bytes) -> bytes:
    """Send ``data``, and read until the server closes the connection."""
    with socket.create_connection(address, timeout=TIMEOUT_S) as client:
        client.sendall(data)
        return read_to_end(client)


def read_to_end(client: socket.socket) -> bytes:
    pieces: list[bytes] = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def descriptors_of(path: str) -> int:
    """Return the number of file descriptors of this process that are open on ``path``."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}") == path
        except OSError:
            continue
    return count
