"""The body of a request on its way to the connection."""

from __future__ import annotations

import weakref
from typing import Any

from pkgrepo.s3.requests import PIECE, Producer


class Consumer:
    """Collects what is written, and pauses after every ``pause_after`` writes."""

    def __init__(self, pause_after: int = 0) -> None:
        self.written = bytearray()
        self.writes = 0
        self.producer: Any = None
        self._pause_after = pause_after

    def start(self, producer: Producer) -> list[object]:
        self.producer = producer
        done: list[object] = []
        producer.startProducing(self).addCallback(done.append)
        return done

    def write(self, data: bytes) -> None:
        self.written += data
        self.writes += 1
        if self._pause_after and self.writes % self._pause_after == 0:
            self.producer.pauseProducing()


class Data(bytearray):
    """Bytes that tell when they are freed."""


def test_a_body_is_written_in_pieces() -> None:
    data = bytes(range(256)) * (5 * PIECE // 512)
    consumer = Consumer()
    assert consumer.start(Producer(data)) == [None]
    assert (bytes(consumer.written), consumer.writes) == (data, 3)
    assert Consumer().start(Producer(b"")) == [None]


def test_a_paused_body_waits_and_goes_on() -> None:
    data = bytes(3 * PIECE)
    consumer = Consumer(pause_after=1)
    done = consumer.start(Producer(data))
    while not done:
        before = consumer.writes
        consumer.producer.resumeProducing()
        assert consumer.writes == before + 1
    assert bytes(consumer.written) == data


def test_a_stopped_body_is_never_done() -> None:
    consumer = Consumer(pause_after=1)
    done = consumer.start(Producer(bytes(3 * PIECE)))
    consumer.producer.stopProducing()
    consumer.producer.resumeProducing()
    assert (done, consumer.writes) == ([], 1)


def test_a_sent_body_is_freed_though_its_connection_keeps_the_producer() -> None:
    data: Any = Data(PIECE)
    freed = weakref.ref(data)
    consumer = Consumer()
    consumer.start(Producer(data))
    del data
    assert freed() is None
    assert consumer.producer is not None


def test_each_piece_that_is_taken_is_news() -> None:
    news: list[None] = []
    consumer = Consumer(pause_after=1)
    consumer.start(Producer(bytes(3 * PIECE), lambda: news.append(None)))
    assert len(news) == 1
    consumer.producer.resumeProducing()
    assert len(news) == 2
