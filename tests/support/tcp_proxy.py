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
    Forwards connections to the server at ``target``, and records the heads of requests, whose bodies have a length.

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
        self._connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = "{}:{}".format(*self._listener.getsockname())

    def requests(self, text: str) -> list[Head]:
        """Return the requests whose request line contains ``text``, in order."""
        with self._lock:
            return [head for head in self.heads if text in head.line]

    def lead_to(self, target: tuple[str, int]) -> None:
        """Forward further connections to another server."""
        self._target = target

    def start(self) -> None:
        """Accept connections, until ``stop``."""
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def running(self) -> Iterator[TcpProxy]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """Close the port and all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:  # there is no server now
                client.close()
                continue
            connection = _Connection(self, client, server)
            self._connections.append(connection)
            for work in (connection.up, connection.down):
                threading.Thread(target=work, daemon=True).start()

    def record(self, head: Head) -> int | None:
        """Record a request. Returns the number of bytes to forward before the cut, or None if it is not to be cut."""
        with self._lock:
            self.heads.append(head)
            if not self._cut or self.was_cut or self._cut not in head.line:
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
        """Forward the client's bytes, request by request."""
        pending, body = b"", 0
        with suppress(OSError):
            while data := self._client.recv(CHUNK):
                pending += data
                while pending and (body or b"\r\n\r\n" in pending):
                    if not body:
                        raw, _, pending = pending.partition(b"\r\n\r\n")
                        body = self._forward_head(raw)
                    self._server.sendall(pending[:body])
                    pending, body = pending[body:], max(0, body - len(pending))
        self.close()

    def _forward_head(self, raw: bytes) -> int:
        """Forward a head. Returns the length of the body."""
        line, *rest = raw.decode("latin-1").split("\r\n")
        pairs = (field.partition(":") for field in rest)
        head = Head(line, {name.lower(): value.strip() for name, _, value in pairs})
        left = self._proxy.record(head)
        if left is not None:
            self._left = left
        self._server.sendall(raw + b"\r\n\r\n")
        return int(head.fields.get("content-length", 0))

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
        self.close()

    def close(self) -> None:
        """Close both sides."""
        for each in (self._client, self._server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
