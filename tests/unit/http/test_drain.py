"""The end of connections when the site is drained."""

from __future__ import annotations

from tests.support.http_handlers import GET, Gate, path
from tests.support.memory_connection import Connection


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
