"""Upstreams for tests: TCP servers in the test process that answer with the bytes they are told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.internet import reactor as _reactor
from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import PrivateCertificate

reactor: Any = _reactor


@frozen
class RawHead:
    """The head of a request; ``fields`` by lower-case name."""

    method: str
    target: str
    fields: Mapping[str, str]


class RawConnection(Protocol):
    """One connection to the server; ``answer`` is called for every head that arrives."""

    def __init__(self, server: RawServer) -> None:
        self._server = server
        self._received = b""
        self.is_lost = False
        self.tunnel: Callable[[bytes], None] | None = None

    def connectionMade(self) -> None:
        self._server.connections.append(self)

    def dataReceived(self, data: bytes) -> None:
        if self.tunnel is not None:
            self.tunnel(data)
            return
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            line, *rest = head.decode("latin-1").split("\r\n")
            method, target, _version = line.split(" ")
            pairs = (field.partition(":") for field in rest)
            found = RawHead(method, target, {name.lower(): value.strip() for name, _, value in pairs})
            self._server.heads.append(found)
            self._server.answer(self, found)

    def connectionLost(self, reason: object = None) -> None:
        self.is_lost = True

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.transport.write(piece)

    def end(self) -> None:
        self.transport.loseConnection()


Answer = Callable[[RawConnection, RawHead], None]


class RawServer:
    """A server on 127.0.0.1. ``certificate`` is a file with certificate and key, for TLS."""

    def __init__(self, answer: Answer, certificate: Path | None = None) -> None:
        self.answer = answer
        self.heads: list[RawHead] = []
        self.connections: list[RawConnection] = []
        factory = Factory.forProtocol(lambda: RawConnection(self))
        factory.noisy = False
        if certificate is None:
            self._port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        else:
            options = PrivateCertificate.loadPEM(certificate.read_bytes()).options()
            self._port = reactor.listenSSL(0, factory, options, interface="127.0.0.1")
        self.port: int = self._port.getHost().port
        self.url = f"{'http' if certificate is None else 'https'}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        for connection in self.connections:
            if not connection.is_lost:
                connection.transport.abortConnection()
        await maybeDeferred(self._port.stopListening)

    @property
    def targets(self) -> list[str]:
        return [head.target for head in self.heads]


def reply(body: bytes = b"", status: str = "200 OK", **fields: str) -> Answer:
    """Answer each request with this; ``fields`` have underscores for dashes."""
    head = response_head(status, Content_Length=str(len(body)), **fields)
    return lambda connection, request: connection.send(head, b"" if request.method == "HEAD" else body)


def response_head(status: str = "200 OK", **fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def in_turn(*answers: Answer) -> Answer:
    """The first answer for the first request, and so on; the last one for all others."""
    left = list(answers)

    def answer(connection: RawConnection, head: RawHead) -> None:
        chosen = left.pop(0) if len(left) > 1 else left[0]
        chosen(connection, head)

    return answer


def by_path(answers: Mapping[str, Answer]) -> Answer:
    """Answers by the target of the request."""
    return lambda connection, head: answers[head.target](connection, head)
