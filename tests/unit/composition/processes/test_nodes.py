"""Questions to the processes of other nodes."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from pkgrepo.composition.processes.nodes import ANSWER_S, NodeChannel


class News:
    """What ``Nodes`` does, for processes in this one; ``silent`` ones get nothing."""

    def __init__(self, all_: list[News]) -> None:
        self.all = all_
        self.silent = False
        self.receive: Callable[[bytes], None] = lambda _: None
        all_.append(self)

    def subscribe(self, receive: Callable[[bytes], None]) -> None:
        self.receive = receive

    def count_others(self) -> Deferred[int]:
        return succeed(len(self.all) - 1)

    def send(self, data: bytes) -> None:
        for each in self.all:
            if each is not self and not each.silent:
                each.receive(data)


def channels(count: int, clock: Clock) -> tuple[list[NodeChannel], list[News]]:
    news: list[News] = []
    found = [NodeChannel(News(news), clock) for _ in range(count)]  # type: ignore[arg-type]
    for number, each in enumerate(found):
        each.peers.answer("name", _answer(b"node%d" % number))
    return found, news


def _answer(name: bytes) -> Callable[[], Deferred[bytes]]:
    return lambda: succeed(name)


async def test_all_others_are_asked() -> None:
    clock = Clock()
    found, _ = channels(3, clock)
    assert sorted(await found[0].peers.gather("name")) == [b"node1", b"node2"]
    assert await found[1].peers.gather("another topic") == []
    assert clock.getDelayedCalls() == []


async def test_a_single_node_asks_nobody() -> None:
    [alone], _ = channels(1, Clock())
    assert await alone.peers.gather("name") == []


async def test_one_that_does_not_answer_is_done_without() -> None:
    clock = Clock()
    found, news = channels(3, clock)
    news[1].silent = True
    asking = Deferred.fromCoroutine(found[0].peers.gather("name"))
    assert not asking.called
    clock.advance(ANSWER_S)
    assert await asking == [b"node2"]
    assert clock.getDelayedCalls() == []


def test_news_of_another_release_are_ignored() -> None:
    found, news = channels(2, Clock())
    received: list[bytes] = []
    found[1].peers.subscribe("topic", received.append)
    news[0].send(b"\x81\xa4type\xa7Unknown")
    news[0].send(b"")
    found[0].peers.publish("topic", b"data")
    assert received == [b"data"]
