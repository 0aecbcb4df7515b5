"""An HTTP proxy that only makes tunnels (CONNECT), and the registries of the internet that are reached through it."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies

import pytest

CHUNK = 64 * 1024
REACH_S = 10  # seconds for a connection to a registry; a network without one may drop packets


class Tunnels(socketserver.ThreadingTCPServer):
    """A server of tunnels at a free port of 127.0.0.1, while used as a context manager; C{hosts} were asked for."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.hosts: set[str] = set()
        self.sockets: list[socket.socket] = []

    @property
    def url(self) -> str:
        """The value of HTTPS_PROXY."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cut()

    def cut(self) -> None:
        """Close the port and all tunnels; also twice."""
        self.shutdown()
        self.server_close()
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Tunnel(socketserver.StreamRequestHandler):
    server: Tunnels

    def handle(self) -> None:
        method, authority, _ = self.rfile.readline().decode("ascii").split()
        assert method == "CONNECT"
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        host, _, port = authority.rpartition(":")
        self.server.hosts.add(host)
        with suppress(OSError), socket.create_connection((host, int(port))) as far:
            self.server.sockets += [self.connection, far]
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=_copy, args=(self.connection, far), daemon=True).start()
            _copy(far, self.connection)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def require_registry(url: str) -> None:
    """Skip the test unless the registry at this URL can be reached from here, directly and by TLS."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username or getproxies():
        pytest.skip("the client is configured for no registry that is reached directly and anonymously by https")
    try:
        socket.create_connection((parts.hostname, parts.port or 443), REACH_S).close()
    except OSError as error:
        pytest.skip(f"the registry of the client's configuration cannot be reached: {error.strerror or error}")
