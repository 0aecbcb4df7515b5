"""One connection: bodies, expectations, pipelines, limits and the end."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.channel import BUFFER_LIMIT, REQUESTS_PER_TURN
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.body import HIGH_WATER, BodyLost
from pkgrepo.http.request import Request
from tests.support.memory_connection import Connection

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def put(length: int, extra: bytes = b"") -> bytes:
    return b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n" % (length, extra)


EXPECT = b"Expect: 100-continue\r\n"


async def echo(request: Request) -> Answer:
    return Answer(body=b"".join([chunk async for chunk in request.body]))


async def refuse(_request: Request) -> Answer:
    raise Refusal(401, "who are you?", headers=((b"WWW-Authenticate", b"Basic"),))


async def path(request: Request) -> Answer:
    return text_answer(request.path.decode())


class Gate:
    """A handler that answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Deferred[None]] = []
        self.seen: list[Request] = []
        self.ends: list[BaseException | None] = []

    async def __call__(self, request: Request) -> Answer:
        self.seen.append(request)
        self.waiting.append(Deferred())
        try:
            await self.waiting[-1]
        except BaseException as error:
            self.ends.append(error)
            raise
        self.ends.append(None)
        return text_answer(request.path.decode())

    def open(self) -> None:
        self.waiting.pop(0).callback(None)


# Bodies


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


# 100 Continue


def test_100_continue_is_sent_with_the_first_read() -> None:
    connection = Connection(gate := Gate())
    connection.send(put(5, EXPECT))
    assert connection.take() == b""
    (request,) = gate.seen
    reading = Deferred.fromCoroutine(request.body.read())
    assert connection.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(b"hello")
    assert reading.result == b"hello"
    gate.open()
    answer = connection.answer()
    assert answer.status == 200
    assert "connection" not in answer.headers


def test_refused_upload_reads_no_body_and_sends_no_100_continue() -> None:
    connection = Connection(refuse)
    connection.send(put(5_000_000, EXPECT))
    answer = connection.answer()
    assert (answer.status, answer.reason) == (401, "who are you?")
    assert answer.headers["www-authenticate"] == "Basic"
    assert answer.headers["connection"] == "close"
    assert not connection.closed
    connection.wait(2)
    assert connection.closed


def test_too_long_body_is_refused_without_100_continue() -> None:
    async def read(request: Request) -> Answer:
        return Answer(body=await request.body.read_all(10))

    connection = Connection(read)
    connection.send(put(11, EXPECT))
    assert connection.answer().status == 413


def test_http_1_0_client_gets_no_100_continue() -> None:
    connection = Connection(echo)
    connection.send(b"PUT / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
    assert connection.answer().body == b"hello"


# What is left of a refused body


def test_rest_of_a_short_body_is_read_and_the_connection_kept() -> None:
    connection = Connection(refuse)
    connection.send(put(60_000) + b"x" * 1000)
    assert "connection" not in connection.answer().headers
    connection.send(b"x" * 59_000 + GET)
    assert connection.answer().status == 401
    assert not connection.closed


def test_rest_of_a_long_body_is_read_and_the_connection_closed() -> None:
    connection = Connection(refuse)
    connection.send(put(1_000_000) + b"x" * 1000)
    assert connection.answer().headers["connection"] == "close"
    connection.send(b"x" * 500_000)
    assert not connection.closed
    connection.send(b"x" * 499_000)
    assert connection.closed


def test_rest_of_a_chunked_body_is_read_and_the_connection_closed() -> None:
    connection = Connection(refuse)
    connection.send(CHUNKED + b"5\r\nhello\r\n")
    assert connection.answer().headers["connection"] == "close"
    connection.send(b"0\r\n\r\n")
    assert connection.closed


def test_malformed_rest_of_a_chunked_body_closes_the_connection() -> None:
    connection = Connection(refuse)
    connection.send(CHUNKED)
    assert connection.answer().status == 401
    connection.send(b"nonsense\r\n")
    assert connection.closed


def test_rest_of_a_body_is_read_up_to_a_limit() -> None:
    connection = Connection(refuse, limits=HttpLimits(drain_bytes=100_000))
    connection.send(put(1_000_000) + b"x" * 100_000)
    assert not connection.closed
    connection.send(b"x")
    assert connection.closed


def test_rest_of_a_body_has_an_idle_timeout() -> None:
    connection = Connection(refuse)
    connection.send(put(1_000_000))
    for _ in range(9):
        connection.send(b"x")
        connection.wait(1)
        assert not connection.closed
    connection.send(b"x")
    connection.wait(1)
    assert connection.closed


def test_idle_timeout_of_a_rest_also_runs_when_the_refusal_comes_just_before_a_check() -> None:
    connection = Connection(gate := Gate())
    connection.send(put(1_000_000) + b"x" * HIGH_WATER)
    connection.clock.advance(0.99)
    gate.open()
    assert connection.answer().headers["connection"] == "close"
    connection.clock.advance(0.01)
    assert not connection.closed
    connection.clock.advance(1)
    assert connection.closed


def test_handler_that_reads_on_after_its_answer_gets_an_error() -> None:
    connection = Connection(refuse)
    seen: list[Request] = []

    async def keep(request: Request) -> Answer:
        seen.append(request)
        return Answer()

    connection = Connection(keep)
    connection.send(put(5) + b"he")
    late = Deferred.fromCoroutine(_collect(seen[0]))
    failure: Any = late.result
    late.addErrback(lambda _: None)
    assert failure.check(BodyLost)


async def _collect(request: Request) -> list[bytes]:
    return [chunk async for chunk in request.body]


# Several requests on a connection


def test_pipelined_requests_are_answered_in_order_and_one_at_a_time() -> None:
    connection = Connection(gate := Gate())
    connection.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in range(3)))
    assert len(gate.seen) == 1
    for _ in range(3):
        gate.open()
    assert [answer.body for answer in connection.answers()] == [b"/0", b"/1", b"/2"]


def test_many_pipelined_requests_are_answered_a_few_at_a_time() -> None:
    connection = Connection(path)
    connection.send(GET * 2000)
    assert len(connection.answers()) == REQUESTS_PER_TURN
    connection.clock.advance(0)  # this clock runs every turn there is
    assert len(connection.answers()) == 2000 - REQUESTS_PER_TURN


def test_client_that_pipelines_too_much_is_paused() -> None:
    connection = Connection(gate := Gate())
    connection.send(GET + b"GET /2 HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000)
    connection.send(b"x" * BUFFER_LIMIT)
    assert not connection.reading
    gate.open()
    assert connection.reading


def test_no_request_is_begun_while_the_client_does_not_read_answers() -> None:
    connection = Connection(path)
    connection.channel.pauseProducing()
    connection.send(GET)
    assert connection.take() == b""
    assert not connection.reading
    connection.channel.resumeProducing()
    assert connection.answer().status == 200
    assert connection.reading


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ],
)
def test_connection_is_closed_when_the_client_wants_it(head: bytes) -> None:
    connection = Connection(path)
    connection.send(head + GET)
    assert connection.answer().headers["connection"] == "close"
    assert connection.closed


def test_client_that_leaves_cancels_the_handler() -> None:
    connection = Connection(gate := Gate())
    connection.send(GET)
    connection.lose()
    assert [type(end) for end in gate.ends] == [CancelledError]
    assert gate.seen[0].gone


# Time


def test_slow_head_is_refused_at_its_deadline() -> None:
    connection = Connection(path)
    for byte in (GET * 2)[:20]:
        connection.send(bytes([byte]))
        connection.wait(1)
    assert connection.answer().status == 408
    connection.wait(2)
    assert connection.closed


@pytest.mark.parametrize("hello", [b"\x16\x03\x01\x01\x2a\x01", b"\x16\x03\x01\x01\x2a\x01\x00\x00\x0a\x00"])
def test_tls_client_is_refused_at_once(hello: bytes) -> None:
    connection = Connection(path)
    connection.send(hello)
    answer = connection.answer()
    assert (answer.status, b"TLS" in answer.body) == (400, True)


def test_connection_without_a_request_is_closed() -> None:
    connection = Connection(path)
    connection.wait(19)
    assert not connection.closed
    connection.wait(1)
    assert connection.closed
    assert connection.take() == b""


def test_idle_connection_is_kept_for_a_while_and_then_closed() -> None:
    connection = Connection(path)
    connection.send(GET)
    connection.take()
    connection.wait(74)
    connection.send(GET)
    assert connection.answer().status == 200
    connection.wait(74)
    assert not connection.closed
    connection.wait(1)
    assert connection.closed
    assert connection.take() == b""


def test_deadline_of_a_second_head_runs_from_its_first_byte() -> None:
    connection = Connection(path)
    connection.send(GET)
    connection.wait(60)
    connection.send(GET[:10])
    connection.wait(19)
    connection.send(GET[10:])
    assert len(connection.answers()) == 2


def test_a_file_that_an_early_answer_cannot_open_is_left_to_the_resource_tree() -> None:
    def early(_request: Request) -> None:
        raise RuntimeError from OSError(24, "too many open files")

    connection = Connection(path, early=early)
    connection.send(GET)
    assert connection.answer().status == 200


def test_slow_body_fails() -> None:
    connection = Connection(echo)
    connection.send(put(1_000_000))
    for _ in range(30):
        connection.send(b"x" * 99)
        connection.wait(1)
    answer = connection.answer()
    assert (answer.status, answer.headers["connection"]) == (408, "close")


@pytest.mark.parametrize("drip", [b"1\r\nx\r\n", b"1;" + b"y" * 200 + b"\r\nx\r\n"])
def test_body_of_tiny_chunks_fails(drip: bytes) -> None:
    connection = Connection(echo)
    connection.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(30):
        connection.send(drip * 10)
        connection.wait(1)
    answer = connection.answer()
    assert (answer.status, answer.headers["connection"]) == (408, "close")


def test_body_at_the_least_rate_is_read() -> None:
    connection = Connection(echo)
    connection.send(put(40_000))
    for _ in range(400):
        connection.send(b"x" * 100)
        connection.wait(1)
    assert connection.answer().status == 200


def test_body_that_stops_after_a_fast_start_fails() -> None:
    connection = Connection(echo)
    connection.send(put(1_000_000) + b"x" * 500_000)
    connection.wait(60)
    assert connection.answer().status == 408


class SlowDisk(Gate):
    """A handler that takes the body when it is told to."""

    async def __call__(self, request: Request) -> Answer:
        await super().__call__(request)
        return Answer(body=b"".join([chunk async for chunk in request.body]))


def test_body_rate_is_not_counted_while_the_reader_is_slow() -> None:
    disk = SlowDisk()
    connection = Connection(disk)
    connection.send(put(HIGH_WATER + 10) + b"x" * HIGH_WATER)
    connection.wait(300)
    assert connection.take() == b""
    disk.open()
    connection.send(b"y" * 10)
    answer = connection.answer()
    assert (answer.status, answer.body[-12:]) == (200, b"xx" + b"y" * 10)


def test_body_rate_is_counted_again_after_the_reader_was_slow() -> None:
    disk = SlowDisk()
    connection = Connection(disk)
    connection.send(put(HIGH_WATER + 10) + b"x" * HIGH_WATER)
    connection.wait(300)
    disk.open()
    connection.wait(60)
    assert connection.answer().status == 408


def test_body_rate_is_not_counted_before_100_continue() -> None:
    disk = SlowDisk()
    connection = Connection(disk)
    connection.send(put(10, EXPECT))
    connection.wait(300)
    assert connection.take() == b""
    disk.open()
    connection.send(b"y" * 10)
    interim, answer = connection.answers()
    assert (interim.status, answer.status, answer.body) == (100, 200, b"y" * 10)


def test_timeouts_do_not_pass_while_the_server_stands_still() -> None:
    connection = Connection(echo)
    connection.send(put(1000) + b"x")
    connection.wait(2)
    connection.clock.advance(60)  # a virtual machine that was suspended: what came meanwhile waits in the socket
    assert not connection.closed
    connection.send(b"x" * 999)
    connection.wait(1)
    assert connection.answer().status == 200


def test_timeouts_pass_when_the_server_is_always_late() -> None:
    connection = Connection(path)
    connection.clock.advance(30)
    assert not connection.closed
    connection.clock.advance(30)
    assert connection.closed


def test_a_slow_handler_has_no_timeout() -> None:
    connection = Connection(gate := Gate())
    connection.send(GET)
    connection.wait(1000)
    gate.open()
    assert connection.answer().status == 200


def test_client_that_reads_nothing_is_aborted() -> None:
    connection = Connection(path)
    connection.send(GET)
    connection.channel.pauseProducing()
    connection.wait(119)
    assert not connection.aborted
    connection.wait(3)
    assert connection.aborted


# The end


def test_drain_closes_idle_connections_and_waits_for_the_busy_one() -> None:
    gate = Gate()
    busy = Connection(gate)
    done = busy.site.drain(30)
    busy.send(GET)
    busy.wait(5)
    assert not busy.closed
    gate.open()
    assert busy.answer().headers["connection"] == "close"
    assert busy.closed
    assert not done.called
    busy.lose()
    assert done.called


def test_drain_closes_an_idle_connection_soon() -> None:
    idle = Connection(path)
    idle.send(GET)
    idle.take()
    idle.site.drain(30)
    idle.wait(2)
    assert idle.closed


def test_drain_aborts_connections_after_the_deadline() -> None:
    connection = Connection(Gate())
    connection.send(GET)
    connection.site.drain(30)
    connection.wait(29)
    assert not connection.aborted
    connection.wait(1)
    assert connection.aborted


def test_drain_of_a_site_without_connections_is_done_at_once() -> None:
    connection = Connection(path)
    connection.lose()
    assert connection.site.drain(30).called


def test_no_checks_run_for_a_site_without_connections() -> None:
    connection = Connection(path)
    connection.lose()
    connection.wait(2)
    assert connection.clock.getDelayedCalls() == []


def test_connection_whose_end_is_never_confirmed_is_aborted() -> None:
    connection = Connection(path)
    connection.send(b"GET / HTTP/1.0\r\n\r\n")
    assert connection.closed
    connection.wait(14)
    assert not connection.aborted
    connection.wait(1)
    assert connection.aborted
