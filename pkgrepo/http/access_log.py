"""
The access log: one line for each request.

Lines are buffered and written together: a ``write`` for each would cost as much as a small response. Nothing that a
client sends can add a line. Secrets in an address (the query, a token in the path) are left out, and long words are
cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, Any, Literal

import msgspec
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog

from .repeats import LogRepeat
from .request import Request

FLUSH_S = 1.0
FLUSH_BYTES = 64 * 1024
LONGEST_PATH = 1024  # characters of a path, or of another word of a client; the rest is cut off
CLIENT_LEFT = 499  # as in nginx: no response, because the client had left

Redact = Callable[[str], str]

_encode = msgspec.json.Encoder().encode
_log = Logger()


class AccessLogWriter:
    """
    An access log in a binary file opened for appending.

    ``style`` is "text" (fields in a fixed order, separated by blanks, ``-`` for an empty one) or "json" (one object a
    line). ``redact`` gets the path and returns what may be written of it. With ``agents`` a line ends with the
    User-Agent (``agent`` in JSON).
    """

    def __init__(
        self,
        file: IO[bytes],
        *,
        reactor: Any,
        style: Literal["text", "json"] = "text",
        redact: Redact | None = None,
        agents: bool = False,
    ) -> None:
        self._file = file
        self._reactor = reactor
        self._json = style == "json"
        self._make_writer = self._json_writer if self._json else self._text_writer
        self._redact = redact
        self._agents = agents
        self._failures = FailureLog(_log, "the access log cannot be written, and lines of it are lost")
        self._lines: list[bytes] = []
        self._size = 0
        self._flushing: IDelayedCall | None = None
        self._second = 0
        self._time = ""

    def request(self, request: Request) -> None:
        """Log a request that was answered, or whose client has left."""
        elapsed = request.site.seconds() - request.started
        self.repeater(request)(request.client_address, request.raw_request_id, elapsed)

    def repeater(self, request: Request) -> LogRepeat:
        """A function that logs a further request with the same bytes as this one and the same response."""
        path = request.raw_path.decode("latin-1")
        if self._redact is not None:
            path = self._redact(path)
        status = request.code if request.startedWriting else CLIENT_LEFT
        return self._make_writer(request, status, _cut(path))

    def refused(self, client_address: str, status: int, sentence: str) -> None:
        """Log a malformed head, without its bytes."""
        if self._json:
            event = {"time": self._now(), "client": client_address, "status": status, "refused": sentence}
            self._add(_encode(event) + b"\n")
        else:
            text = f"{self._now()} - {client_address or '-'} - - - {status} 0 0.0 - - {sentence}\n"
            self._add(text.encode("utf-8"))

    def flush(self) -> None:
        """Write the buffered lines."""
        if self._flushing is not None and self._flushing.active():
            self._flushing.cancel()
        self._flushing = None
        lines, self._lines, self._size = self._lines, [], 0
        if not lines:
            return
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError as error:
            self._failures.failed(error)
        else:
            self._failures.succeeded()

    def reopen(self, file: IO[bytes]) -> None:
        """Write to another file from now on, for log rotation; the old one is closed."""
        self.flush()
        self._file.close()
        self._file = file

    def _text_writer(self, request: Request, status: int, path: str) -> LogRepeat:
        before = f"{_word(request.principal)} {_cut(request.method.decode())} {path} {status} {request.sentLength}"
        after = f"{_word(request.repository)} {request.cache or '-'}"
        after += f" {_word(_agent(request))}\n" if self._agents else "\n"

        def write(client_address: str, request_id: bytes, seconds: float) -> None:
            who = f"{request_id.decode()} {client_address or '-'}"
            self._add(f"{self._now()} {who} {before} {seconds * 1000:.1f} {after}".encode())

        return write

    def _json_writer(self, request: Request, status: int, path: str) -> LogRepeat:
        before = {
            "principal": request.principal,
            "method": _cut(request.method.decode()),
            "path": path,
            "status": status,
            "bytes": request.sentLength,
        }
        after = {"repository": request.repository, "cache": request.cache}
        if self._agents:
            after["agent"] = _agent(request)

        def write(client_address: str, request_id: bytes, seconds: float) -> None:
            who = {"time": self._now(), "id": request_id.decode(), "client": client_address}
            self._add(_encode({**who, **before, "ms": round(seconds * 1000, 1), **after}) + b"\n")

        return write

    def _now(self) -> str:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._time = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        return self._time

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size >= FLUSH_BYTES:
            self.flush()
        elif self._flushing is None:
            self._flushing = self._reactor.callLater(FLUSH_S, self.flush)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PATH else text[:LONGEST_PATH] + "..."


def _agent(request: Request) -> str:
    return _cut((request.header(b"user-agent") or b"").decode("latin-1"))


def _word(text: str) -> str:
    """``text`` as one word without control characters; it may come from users."""
    if not text:
        return "-"
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return text.encode("unicode_escape").decode("ascii").replace(" ", "\\x20")
