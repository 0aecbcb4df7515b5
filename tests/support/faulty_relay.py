"""A relay in front of an HTTP server, which spoils some of the requests that pass it."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.support.timeouts import TIMEOUT_S

SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
LATE_ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>We failed.</Message></Error>"

Applies = Callable[[str, str], bool]  # to a method and a path with its query


class Relay:
    """
    Faults are used up in order, each by the first request that it applies to.

    ``slow down`` and ``late error`` are answered instead of the server, ``drop`` closes the connection instead,
    ``lose`` after the server has done what was asked, and ``cut`` sends half of the body of the answer.
    """

    def __init__(self, endpoint: str) -> None:
        self.target = urlsplit(endpoint).netloc
        self.faults: list[tuple[str, Applies]] = []
        self.requests: list[str] = []
        self._lock = threading.Lock()

    def spoil(self, fault: str, method: str, part: str = "", times: int = 1) -> None:
        """Spoil the next requests with this method whose path has this part."""
        self.faults += [(fault, lambda got, path: got == method and part in path)] * times

    def take(self, method: str, path: str) -> str | None:
        """Return the fault for a request."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            for n, (fault, applies) in enumerate(self.faults):
                if applies(method, path):
                    del self.faults[n]
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    relay: Relay

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.relay.take(self.command, self.path)
        if fault == "drop":
            self._hang_up()
        elif fault == "slow down":
            self._answer(503, [], SLOW_DOWN)
        elif fault == "late error":
            self._answer(200, [], LATE_ERROR)
        else:
            self._pass_on(body, fault)

    def _pass_on(self, body: bytes, fault: str | None) -> None:
        upstream = http.client.HTTPConnection(self.relay.target, timeout=TIMEOUT_S)
        try:
            upstream.request(self.command, self.path, body=body, headers=dict(self.headers.items()))
            answer = upstream.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self._hang_up()
            return
        finally:
            upstream.close()
        if fault == "lose":
            self._hang_up()
            return
        skipped = ("content-length", "connection", "transfer-encoding", "date")
        headers = [each for each in answer.getheaders() if each[0].lower() not in skipped]
        self._answer(answer.status, headers, data, cut=fault == "cut")

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, *, cut: bool = False) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"HTTP/1.1 {status} x\r\n{lines}Content-Length: {len(data)}\r\n\r\n".encode("latin-1")
        sent = b"" if self.command == "HEAD" else data[: len(data) // 2] if cut else data
        self.wfile.write(head + sent)
        self.wfile.flush()
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def faulty_relay(endpoint: str) -> Iterator[tuple[Relay, str]]:
    """Run a relay to the server at ``endpoint``; yields it and its own address."""
    relay = Relay(endpoint)
    handler = type("Handler", (_Handler,), {"relay": relay})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield relay, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
