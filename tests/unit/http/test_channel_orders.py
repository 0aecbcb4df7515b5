"""Whatever happens in whatever order, the client reads whole answers, in the order of its requests."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from tests.support.memory_connection import Connection, Received, parse_answers

REQUESTS = [
    b"GET /early/%d HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /late/%d HTTP/1.1\r\nHost: a\r\n\r\n",
    b"PUT /read/%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /read/%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    b"PUT /ignore/%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /late-read/%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /late-ignore/%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
]


class Scene:
    """One client, one server, and what may happen between them."""

    def __init__(self, kinds: list[int]) -> None:
        self.unsent = b"".join(REQUESTS[kind] % number for number, kind in enumerate(kinds))
        self.gates: list[Deferred[None]] = []
        self.bodies: list[bytes] = []
        self.connection = Connection(self.handle, find_prepared=self.early)
        self.blocked = False

    def early(self, request: Request) -> object:
        return PreparedResponse(text_response(request.path.decode())) if request.path.startswith(b"/early") else None

    async def handle(self, request: Request) -> Response:
        if request.path.startswith(b"/late"):
            self.gates.append(Deferred())
            await self.gates[-1]
        if b"read" in request.path:
            self.bodies.append(b"".join([chunk async for chunk in request.body]))
        return text_response(request.path.decode())

    def send(self, count: int) -> None:
        if self.connection.reading:
            piece, self.unsent = self.unsent[:count], self.unsent[count:]
            if piece:
                self.connection.send(piece)

    def open_gate(self) -> None:
        if self.gates:
            self.gates.pop(0).callback(None)

    def turn_tap(self) -> None:
        self.blocked = not self.blocked
        if self.blocked:
            self.connection.channel.pauseProducing()
        else:
            self.connection.channel.resumeProducing()

    def play(self, event: int) -> None:
        if event > 0:
            self.send(event)
        elif event == 0:
            self.open_gate()
        elif event == -1:
            self.turn_tap()
        else:
            self.connection.wait(1)

    def finish(self) -> list[Received]:
        if self.blocked:
            self.turn_tap()
        for _ in range(1000):
            self.send(50)
            self.open_gate()
            self.connection.clock.advance(0)
        return parse_answers(self.connection.take())


@settings(max_examples=300)
@given(
    kinds=st.lists(st.integers(0, len(REQUESTS) - 1), max_size=8),
    events=st.lists(st.integers(-2, 60), max_size=60),
)
def test_every_request_is_answered_whole_and_in_order(kinds: list[int], events: list[int]) -> None:
    scene = Scene(kinds)
    for event in events:
        scene.play(event)
    paths = [answer.body.decode() for answer in scene.finish()]
    if scene.connection.closed:  # a drain took too long: what was answered is still whole and in order
        kinds = kinds[: len(paths)]
    assert paths == [(REQUESTS[kind] % number).split(b" ")[1].decode() for number, kind in enumerate(kinds)]
    assert set(scene.bodies) <= {b"hello"}
