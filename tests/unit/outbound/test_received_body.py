"""Back-pressure of a body that is received: only bytes that its reader does not take at once pause the connection."""

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.outbound.client import ReceivedBody

PIECE = b"x" * 1024


class Transport:
    """Notes what it is asked for."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda: self.asked.append(name)


@pytest.fixture
def body():
    received = ReceivedBody(high_water=len(PIECE))
    received.makeConnection(Transport())
    return received


async def wait(arriving):
    await arriving


def test_reader_that_takes_each_piece_at_once_pauses_nothing(body):
    async def read_all():
        return [await body.read(wait) for _ in range(3)]

    reading = Deferred.fromCoroutine(read_all())
    for _ in range(3):
        body.dataReceived(PIECE)
    assert reading.result == [PIECE] * 3
    assert body.transport.asked == []


async def test_slow_reader_pauses_the_connection_once_and_resumes_it(body):
    for _ in range(2):
        body.dataReceived(PIECE)
    assert body.transport.asked == ["pauseProducing"]
    assert await body.read(wait) == 2 * PIECE
    assert body.transport.asked == ["pauseProducing", "resumeProducing"]


def test_reader_that_leaves_when_a_piece_comes_ends_the_connection(body):
    async def leave(arriving):
        await arriving
        body.abort()

    Deferred.fromCoroutine(body.read(leave))
    body.dataReceived(PIECE)
    assert body.transport.asked == ["stopProducing"]
