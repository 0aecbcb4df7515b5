"""A TCP proxy that records the heads of requests, and closes one connection during a download."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from attrs import frozen

CHUNK = 16 * 1024


@frozen
class Head:
    """The head of a request; ``fields`` by lower-case name."""

    line: str
    fields: Mapping[str, str]


class TcpProxy:
    """
    Forwards connections to the server at ``target``, and records the heads of requests, which must have no bodies.

    The first connection that sends a request line with ``cut`` in it is closed after ``after`` more bytes from the
    server.
    """

    def __init__(self, target: tuple[str, int], cut: str = "", after: int = 0) -> None:
        self.heads: list[Head] = []
        self.was_cut = False
        self._target = target
        self._cut = cut
        self._after = after
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = "{}:{}".format(*self._listener.getsockname())

    def requests(self, text: str) -> list[Head]:
        """Return the requests whose request line contains ``text``, in order."""
        with self._lock:
            return [head for head in self.heads if text in head.line]

    @contextmanager
    def running(self) -> Iterator[TcpProxy]:
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            yield self
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            connection = _Connection(self, client, server)
            for work in (connection.up, connection.down):
                threading.Thread(target=work, daemon=True).start()

    def record(self, raw: bytes) -> int | None:
        """Record a request. Returns the number of bytes to forward before the cut, or None if it is not to be cut."""
        line, *rest = raw.decode("latin-1").split("\r\n")
        pairs = (field.partition(":") for field in rest)
        head = Head(line, {name.lower(): value.strip() for name, _, value in pairs})
        with self._lock:
            self.heads.append(head)
            if not self._cut or self.was_cut or self._cut not in line:
                return None
            self.was_cut = True
            return self._after


class _Connection:
    def __init__(self, proxy: TcpProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._left: int | None = None

    def up(self) -> None:
        """Forward the client's bytes, head by head."""
        pending = b""
        with suppress(OSError):
            while data := self._client.recv(CHUNK):
                pending += data
                *heads, pending = pending.split(b"\r\n\r\n")
                for head in heads:
                    left = self._proxy.record(head)
                    if left is not None:
                        self._left = left
                    self._server.sendall(head + b"\r\n\r\n")
        self._close()

    def down(self) -> None:
        """Forward the server's bytes, up to the cut."""
        with suppress(OSError):
            while data := self._server.recv(CHUNK):
                if self._left is not None:
                    data = data[: self._left]
                    self._left -= len(data)
                self._client.sendall(data)
                if self._left == 0:
                    break
        self._close()

    def _close(self) -> None:
        for each in (self._client, self._server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
