"""100 Continue, and what is left of a body when its request is refused."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.body import HIGH_WATER, BodyLost
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from tests.support.http_handlers import CHUNKED, EXPECT, GET, Gate, echo, put, refuse
from tests.support.memory_connection import Connection


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
    async def read(request: Request) -> Response:
        return Response(body=await request.body.read_all(10))

    connection = Connection(read)
    connection.send(put(11, EXPECT))
    assert connection.answer().status == 413


def test_http_1_0_client_gets_no_100_continue() -> None:
    connection = Connection(echo)
    connection.send(b"PUT / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
    assert connection.answer().body == b"hello"


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

    async def keep(request: Request) -> Response:
        seen.append(request)
        return Response()

    connection = Connection(keep)
    connection.send(put(5) + b"he")
    late = Deferred.fromCoroutine(_collect(seen[0]))
    failure: Any = late.result
    late.addErrback(lambda _: None)
    assert failure.check(BodyLost)


async def _collect(request: Request) -> list[bytes]:
    return [chunk async for chunk in request.body]
