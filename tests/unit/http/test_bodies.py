"""Bodies of requests: lengths, chunks, back-pressure, limits."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.http.reading.body import HIGH_WATER, BodyFraming, BodyLost, MalformedChunks
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.untrusted.chunks import FREE_BYTES, LEAST_AVERAGE
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

    async def slow(request: Request) -> Response:
        async for chunk in request.body:
            sizes.append(len(chunk))
            gate.append(Deferred())
            await gate[-1]
        return Response()

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
    async def read(request: Request) -> Response:
        return Response(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(CHUNKED + b"ffffff\r\n" + b"x" * HIGH_WATER)
    assert connection.answer().status == 413
    assert connection.reading


@pytest.mark.parametrize("head", [put(2001), CHUNKED + b"7d1\r\n"])
def test_body_over_its_limit_is_refused(head: bytes) -> None:
    async def read(request: Request) -> Response:
        return Response(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(head)
    if b"chunked" in head:
        assert connection.take() == b""
        connection.send(b"x" * 2001)
    answer = connection.answer()
    assert (answer.status, answer.reason) == (413, "the request body is larger than the 2000 bytes allowed here")


def test_body_at_its_limit_is_read() -> None:
    async def read(request: Request) -> Response:
        request.body.limit = 5
        return Response(body=await request.body.read_all(2000))

    connection = Connection(read)
    connection.send(put(5) + b"hello" + CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + put(6) + b"hello!")
    assert [answer.status for answer in connection.answers()] == [200, 200, 413]


def test_reader_of_a_body_is_told_when_the_client_leaves() -> None:
    ends: list[BaseException] = []

    async def read(request: Request) -> Response:
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


LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("read", [1, 7, 4096, 65536])
def test_chunks_come_out_whole_however_they_are_cut(read: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    wire = b"".join(chunk(bytes([n % 256]) * (n % 97 + 1)) for n in range(200)) + LAST + b"GET /next"
    rest = b""
    for at in range(0, len(wire), read):
        rest += wire[at : at + read] if framing.ended else framing.take(wire[at : at + read])
    assert framing.ended
    assert rest == b"GET /next"
    assert b"".join(fed) == b"".join(bytes([n % 256]) * (n % 97 + 1) for n in range(200))


def test_what_follows_the_last_chunk_in_a_large_read_comes_back_whole() -> None:
    framing = BodyFraming(None, lambda _: None)
    following = b"GET / HTTP/1.1\r\n" * 1000
    assert framing.take(chunk(b"body") + LAST + following) == following


def test_small_chunks_of_one_read_are_handed_on_in_one_piece() -> None:
    fed: list[bytes] = []
    BodyFraming(None, fed.append).take(chunk(b"x") * 900)
    assert fed == [b"x" * 900]


def test_a_read_from_within_a_chunk_is_handed_on_as_it_is() -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    framing.take(b"2000\r\n")
    read = b"x" * 4096
    framing.take(read)
    assert fed[0] is read


@pytest.mark.parametrize("read", [7, 4096, 65_536])
def test_a_body_of_up_to_a_mebibyte_comes_in_chunks_of_any_size(read: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    wire = chunk(b"x") * (FREE_BYTES if read > 7 else 50_000) + LAST
    for at in range(0, len(wire), read):
        framing.take(wire[at : at + read])
    assert framing.ended
    assert set(b"".join(fed)) == set(b"x")
    assert sum(map(len, fed)) == wire.count(b"x")


@pytest.mark.parametrize("size", [1, 15])
def test_tiny_chunks_of_a_longer_body_are_refused(size: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    free = FREE_BYTES // size
    framing.take(chunk(b"x" * size) * free)
    with pytest.raises(MalformedChunks, match="smaller than 16 bytes"):
        framing.take(chunk(b"x" * size) * 2)
    assert sum(map(len, fed)) == (free + 2) * size


def test_many_chunks_of_a_usual_size_are_fine() -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    framing.take(chunk(b"x" * LEAST_AVERAGE) * (2 * FREE_BYTES // LEAST_AVERAGE) + LAST)
    assert framing.ended
    assert sum(map(len, fed)) == 2 * FREE_BYTES
