"""HTTP connections in memory: a channel with a string transport and a clock that the test advances."""

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

from pkgrepo.http.answering.dispatch import ErrorTable, answer_with
from pkgrepo.http.channel import Channel
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.http.site import Site, make_site

Handler = Callable[[Request], Awaitable[Response]]


def render_text(_request: Request, refusal: Refusal) -> Response:
    return text_response(refusal.sentence, refusal.status, headers=refusal.headers, reason=refusal.sentence)


ERRORS = ErrorTable({}, render_text)


class HandlerResource(Resource):
    """A resource that calls one handler for every path."""

    isLeaf = True

    def __init__(self, handler: Handler, errors: ErrorTable = ERRORS) -> None:
        super().__init__()
        self.handler = handler
        self.errors = errors

    def render(self, request: Any) -> Any:
        task = Deferred.fromCoroutine(answer_with(request, self.errors, lambda: self.handler(request)))
        # As in twisted.web, processingFailed sends the error response and returns the failure.
        task.addErrback(request.processingFailed).addErrback(lambda _: None)
        request.notifyFinish().addErrback(lambda _: task.cancel())
        return NOT_DONE_YET


@frozen
class Received:
    """A response as a client reads it."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


def parse_answers(data: bytes, heads: int | None = None) -> list[Received]:
    """
    Parse the responses in ``data``; a 100 is a response without a body.

    Responses from index ``heads`` on are those of HEAD requests and have no bodies. One without a length is the last.
    """
    answers: list[Received] = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"incomplete head: {head!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) (.*)", first)
        assert match, f"no status line: {first!r}"
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        bodiless = match[1] in ("100", "204", "304") or (heads is not None and len(answers) >= heads)
        length = 0 if bodiless else int(headers.get("content-length", len(data)))
        assert len(data) >= length, "incomplete body"
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
        """Return the bytes that the server has written since the last call."""
        data: bytes = self.transport.value()
        self.transport.clear()
        return data

    def answers(self, heads: int | None = None) -> list[Received]:
        return parse_answers(self.take(), heads)

    def answer(self) -> Received:
        (answer,) = self.answers()
        return answer

    def wait(self, seconds: int) -> None:
        """Advance the clock in steps of one second, so that repeating timers run each time."""
        for _ in range(seconds):
            self.clock.advance(1)

    def lose(self) -> None:
        self.channel.connectionLost(Failure(ConnectionDone()))

    @property
    def closed(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.transport.disconnecting)

    @property
    def aborted(self) -> bool:
        return bool(self.transport.disconnected)

    @property
    def reading(self) -> bool:
        return bool(self.transport.producerState == "producing")
