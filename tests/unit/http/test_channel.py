"""Several requests on a connection: their order, their number, the end of the connection."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError

from pkgrepo.http.channel import BUFFER_LIMIT, REQUESTS_PER_TURN
from tests.support.http_handlers import GET, Gate, path
from tests.support.memory_connection import Connection


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
