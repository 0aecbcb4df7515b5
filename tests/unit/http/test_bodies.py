"""Bodies of requests: lengths, chunks, back-pressure, limits."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.http.answers import Answer
from pkgrepo.http.reading.body import HIGH_WATER, BodyLost
from pkgrepo.http.request import Request
from tests.support.http_handlers import CHUNKED, GET, Gate, echo, put
from tests.support.memory_connection import Connection


def test_request_is_handled_before_its_body_arrives() -> None:
    connection = Connection(gate := Gate())
    connection.send(put(5))
    assert [request.body.declared for request in gate.seen] == [5]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_body_with_a_length_is_read_to_its_end_and_no_further(step: int) -> None:
    connection = Connection(echo)
    data = put(5) + b"hello" + put(0) + put(3) + b"abc"
    for at in range(0, len(data), step):
        connection.send(data[at : at + step])
    assert [answer.body for answer in connection.answers()] == [b"hello", b"", b"abc"]
    assert not connection.closed


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_chunked_body_is_decoded(step: int) -> None:
    connection = Connection(echo)
    data = CHUNKED + b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n" + GET
    for at in range(0, len(data), step):
        connection.send(data[at : at + step])
    assert [answer.body for answer in connection.answers()] == [b"hello world", b""]


@pytest.mark.parametrize("body", [b"x\r\n", b"-5\r\nhello", b"5\r\nhello!!", b"0x5\r\nhello\r\n", b"5 \r\nhello\r\n"])
def test_malformed_chunks_are_refused_in_the_format_of_the_handler(body: bytes) -> None:
    connection = Connection(echo)
    connection.send(CHUNKED + body)
    answer = connection.answer()
    assert answer.status == 400
    assert "chunks" in answer.body.decode()
    assert answer.headers["connection"] == "close"
    connection.send(GET)
    connection.wait(3)
    assert connection.take() == b""
    assert connection.closed


def test_slow_reader_pauses_the_client() -> None:
    gate: list[Deferred[None]] = []
    sizes: list[int] = []

    async def slow(request: Request) -> Answer:
        async for chunk in request.body:
            sizes.append(len(chunk))
            gate.append(Deferred())
            await gate[-1]
        return Answer()

    connection = Connection(slow)
    connection.send(put(4 * HIGH_WATER) + b"x")
    connection.send(b"x" * (HIGH_WATER - 1))
    assert connection.reading
    connection.send(b"x")
    assert not connection.reading
    gate.pop().callback(None)
    assert connection.reading
    assert sizes == [1, HIGH_WATER]
    connection.send(b"x" * (3 * HIGH_WATER - 1))
    gate.pop().callback(None)
    gate.pop().callback(None)
    assert connection.answer().status == 200
    assert connection.reading


def test_reader_that_waits_for_bytes_never_pauses_the_client() -> None:
    connection = Connection(echo)
    states: list[bool] = []
    connection.transport.pauseProducing = lambda: states.append(False)  # type: ignore[method-assign]
    connection.send(put(4 * HIGH_WATER))
    for _ in range(4):
        connection.send(b"x" * HIGH_WATER)
    assert states == []
    assert len(connection.answer().body) == 4 * HIGH_WATER


def test_rest_of_a_refused_body_is_read_also_when_a_large_read_led_to_the_refusal() -> None:
    async def read(request: Request) -> Answer:
        return Answer(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(CHUNKED + b"ffffff\r\n" + b"x" * HIGH_WATER)
    assert connection.answer().status == 413
    assert connection.reading


@pytest.mark.parametrize("head", [put(2001), CHUNKED + b"7d1\r\n"])
def test_body_over_its_limit_is_refused(head: bytes) -> None:
    async def read(request: Request) -> Answer:
        return Answer(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(head)
    if b"chunked" in head:
        assert connection.take() == b""
        connection.send(b"x" * 2001)
    answer = connection.answer()
    assert (answer.status, answer.reason) == (413, "the request body is larger than the 2000 bytes allowed here")


def test_body_at_its_limit_is_read() -> None:
    async def read(request: Request) -> Answer:
        request.body.limit = 5
        return Answer(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(put(5) + b"hello" + CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + put(6) + b"hello!")
    assert [answer.status for answer in connection.answers()] == [200, 200, 413]


def test_reader_of_a_body_is_told_when_the_client_leaves() -> None:
    ends: list[BaseException] = []

    async def read(request: Request) -> Answer:
        try:
            return await echo(request)
        except BodyLost as error:
            ends.append(error)
            raise

    connection = Connection(read)
    connection.send(put(5) + b"he")
    connection.lose()
    assert [str(end) for end in ends] == ["the client closed the connection before the end of the body"]
    assert connection.take() == b""
