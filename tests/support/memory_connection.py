"""Connections without sockets: bytes fed to a channel, answers taken from a string transport, time moved by hand."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from pkgrepo.http.answering.dispatch import answer_with
from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.channel import Channel
from pkgrepo.http.request import Request
from pkgrepo.http.site import Site, make_site

Handler = Callable[[Request], Awaitable[Answer]]


def render_text(_request: Request, refusal: Refusal) -> Answer:
    return text_answer(refusal.sentence, refusal.status, headers=refusal.headers, reason=refusal.sentence)


ERRORS = ErrorTable({}, render_text)


class HandlerResource(Resource):
    """Every path leads to one handler."""

    isLeaf = True

    def __init__(self, handler: Handler, errors: ErrorTable = ERRORS) -> None:
        super().__init__()
        self.handler = handler
        self.errors = errors

    def render(self, request: Any) -> Any:
        task = Deferred.fromCoroutine(answer_with(request, self.errors, lambda: self.handler(request)))
        # processingFailed tells the client and hands the failure on, as twisted.web has it.
        task.addErrback(request.processingFailed).addErrback(lambda _: None)
        request.notifyFinish().addErrback(lambda _: task.cancel())
        return NOT_DONE_YET


@frozen
class Received:
    """An answer as a client reads it."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


def parse_answers(data: bytes, heads: int | None = None) -> list[Received]:
    """
    The answers in ``data``; interim ones are answers without a body.

    The answers numbered from ``heads`` on answer HEAD requests, so that their bodies are absent.
    """
    answers: list[Received] = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"an incomplete head: {head!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) (.*)", first)
        assert match, f"no status line: {first!r}"
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        bodiless = match[1] in ("100", "204", "304") or (heads is not None and len(answers) >= heads)
        length = 0 if bodiless else int(headers["content-length"])
        assert len(data) >= length, "the body is cut short"
        answers.append(Received(int(match[1]), match[2], headers, data[:length]))
        data = data[length:]
    return answers


class Connection:
    """A client's view of one connection to a site."""

    def __init__(self, handler: Handler, **site_options: Any) -> None:
        self.clock = Clock()
        self.site: Site = make_site(HandlerResource(handler), reactor=self.clock, **site_options)
        self.transport = StringTransport()
        self.channel: Channel = self.site.buildProtocol(None)
        self.channel.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        self.channel.dataReceived(data)

    def take(self) -> bytes:
        """The bytes that the server has written since the last call."""
        data: bytes = self.transport.value()
        self.transport.clear()
        return data

    def answers(self, heads: int | None = None) -> list[Received]:
        return parse_answers(self.take(), heads)

    def answer(self) -> Received:
        (answer,) = self.answers()
        return answer

    def wait(self, seconds: int) -> None:
        """Let time pass in steps, as a reactor does."""
        for _ in range(seconds):
            self.clock.advance(1)

    def lose(self) -> None:
        self.channel.connectionLost(Failure(ConnectionDone()))

    @property
    def closed(self) -> bool:
        """Whether the server has closed."""
        return bool(self.transport.disconnecting)

    @property
    def aborted(self) -> bool:
        return bool(self.transport.disconnected)

    @property
    def reading(self) -> bool:
        return bool(self.transport.producerState == "producing")
