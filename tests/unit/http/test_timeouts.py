"""Timeouts of one connection: of heads, bodies, idle time and clients that do not read."""

from __future__ import annotations

import pytest

from pkgrepo.http.reading.body import HIGH_WATER
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from tests.support.http_handlers import EXPECT, GET, Gate, echo, path, put
from tests.support.memory_connection import Connection


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

    connection = Connection(path, find_prepared=early)
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

    async def __call__(self, request: Request) -> Response:
        await super().__call__(request)
        return Response(body=b"".join([chunk async for chunk in request.body]))


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
