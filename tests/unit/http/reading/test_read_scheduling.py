"""Large reads of bodies: when they begin and end, and their budget per turn of the reactor."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from pkgrepo.http.reading.read_scheduling import LARGE_READ, LARGE_READS, USUAL_READ, ReadQueue, ReadScheduler
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from tests.support.memory_connection import Connection

CHUNKED = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def put(length: int) -> bytes:
    return b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % length


class Reactor:
    """A reactor whose turns the test takes."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def callLater(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds == 0
        self.calls.append(call)

    def turn(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Crowd:
    """Readers of one queue, by number."""

    def __init__(self, count: int) -> None:
        self.reactor = Reactor()
        queue = ReadQueue(self.reactor)  # type: ignore[arg-type]
        self.changed: list[int] = []
        self.readers = [ReadScheduler(queue, lambda number=n: self.changed.append(number)) for n in range(count)]  # type: ignore[misc]

    def read(self, *numbers: int) -> None:
        for number in numbers:
            assert not self.readers[number].paused
            self.readers[number].note_read(LARGE_READ, None)

    def waiting(self) -> list[int]:
        return [number for number, reader in enumerate(self.readers) if reader.paused]


def test_reads_beyond_the_budget_are_queued_and_resumed_in_order() -> None:
    crowd = Crowd(2 * LARGE_READS + 2)
    crowd.read(*range(2 * LARGE_READS + 2))
    assert crowd.waiting() == list(range(LARGE_READS, 2 * LARGE_READS + 2))
    crowd.reactor.turn()
    assert crowd.waiting() == [2 * LARGE_READS, 2 * LARGE_READS + 1]
    crowd.reactor.turn()
    assert crowd.waiting() == []
    crowd.reactor.turn()
    assert crowd.reactor.calls == []
    waited = list(range(LARGE_READS, 2 * LARGE_READS + 2))
    assert crowd.changed == waited + waited  # once to stop, once to go on


def test_a_further_read_is_queued_behind_the_others() -> None:
    crowd = Crowd(LARGE_READS + 1)
    crowd.read(*range(LARGE_READS + 1))
    crowd.read(0)
    assert crowd.waiting() == [0, LARGE_READS]
    crowd.reactor.turn()
    assert crowd.waiting() == []


def test_one_alone_reads_on() -> None:
    crowd = Crowd(1)
    for _ in range(3 * LARGE_READS):
        crowd.read(0)
        crowd.reactor.turn()
    assert crowd.changed == []


def test_reads_of_the_usual_size_need_no_turn() -> None:
    crowd = Crowd(1)
    for _ in range(3 * LARGE_READS):
        crowd.readers[0].note_read(USUAL_READ, None)
    assert crowd.reactor.calls == crowd.changed == []


async def read_all(request: Request) -> Response:
    async for _ in request.body:
        pass
    return Response()


def connect() -> tuple[Connection, SimpleNamespace]:
    """A connection to a site, and what stands for its socket."""
    connection = Connection(read_all)
    socket = connection.channel.socket = SimpleNamespace(bufferSize=USUAL_READ)
    return connection, socket


def test_a_body_that_fills_a_read_is_read_in_larger_ones_until_its_end() -> None:
    connection, socket = connect()
    connection.send(put(USUAL_READ - 1 + USUAL_READ + LARGE_READ))
    connection.send(b"x" * (USUAL_READ - 1))
    assert socket.bufferSize == USUAL_READ
    connection.send(b"x" * USUAL_READ)
    assert socket.bufferSize == LARGE_READ
    connection.send(b"x" * LARGE_READ)
    assert socket.bufferSize == USUAL_READ
    assert connection.answer().status == 200


def test_the_last_read_of_a_body_enlarges_nothing() -> None:
    connection, socket = connect()
    connection.send(put(USUAL_READ))
    connection.send(b"x" * USUAL_READ)
    assert socket.bufferSize == USUAL_READ
    assert connection.answer().status == 200


def test_a_connection_stops_reading_until_its_turn() -> None:
    connection, _ = connect()
    connection.send(CHUNKED + b"%x\r\n" % (LARGE_READS * LARGE_READ + LARGE_READ))
    for _ in range(LARGE_READS):
        connection.send(b"x" * LARGE_READ)
        assert connection.reading
    connection.send(b"x" * LARGE_READ)
    assert not connection.reading
    connection.clock.advance(0)
    assert connection.reading
    connection.send(b"\r\n0\r\n\r\n")
    assert connection.answer().status == 200


def test_a_connection_that_is_lost_while_it_waits_does_not_disturb_the_others() -> None:
    connection, _ = connect()
    connection.send(CHUNKED + b"fffffff\r\n")
    for _ in range(LARGE_READS + 1):
        connection.send(b"x" * LARGE_READ)
    connection.lose()
    connection.clock.advance(0)
    assert not connection.reading
