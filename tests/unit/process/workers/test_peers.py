"""Messages between workers, with the master's part played by the test."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from pkgrepo.process.workers.messages import Answered, Asked, Gathered, Message, Published
from pkgrepo.process.workers.peers import GATHER_S, NoPeers, WorkerPeers


class Place:
    def __init__(self) -> None:
        self.clock = Clock()
        self.sent: list[Message] = []
        self.peers = WorkerPeers(self.sent.append, self.clock)


def test_news_reach_those_who_subscribed_to_their_topic() -> None:
    place, found = Place(), list[bytes]()
    place.peers.subscribe("a", found.append)
    place.peers.publish("a", b"1")
    assert place.sent == [Published("a", b"1")]
    place.peers.receive(Published("a", b"2"))
    place.peers.receive(Published("b", b"3"))
    assert found == [b"2"]


def test_news_that_cannot_be_used_are_logged_and_do_no_harm() -> None:
    def fail(_data: bytes) -> None:
        raise ValueError

    place, found = Place(), list[bytes]()
    place.peers.subscribe("a", fail)
    place.peers.subscribe("a", found.append)
    with capturedLogs() as logged:
        place.peers.receive(Published("a", b"1"))
    assert found == [b"1"]
    assert [event["topic"] for event in logged] == ["a"]


async def test_answers_are_those_to_the_own_question() -> None:
    place = Place()
    first = Deferred.fromCoroutine(place.peers.gather("a", b"mine"))
    second = Deferred.fromCoroutine(place.peers.gather("a"))
    assert place.sent == [Asked(1, "a", b"mine"), Asked(2, "a")]
    place.peers.receive(Gathered(2, [b"y"]))
    place.peers.receive(Gathered(1, [b"x"]))
    assert [await first, await second] == [[b"x"], [b"y"]]


async def test_a_question_that_is_not_answered_ends() -> None:
    place = Place()
    asked = Deferred.fromCoroutine(place.peers.gather("a"))
    place.clock.advance(GATHER_S)
    assert await asked == ()
    place.peers.receive(Gathered(1, [b"late"]))


def test_questions_are_answered() -> None:
    async def answer() -> bytes:
        return b"here"

    place = Place()
    place.peers.answer("a", answer)
    place.peers.receive(Asked(7, "a"))
    place.peers.receive(Asked(8, "unknown"))
    assert place.sent == [Answered(7, b"here"), Answered(8, b"")]


async def test_without_others_nothing_is_sent() -> None:
    alone = NoPeers()
    alone.publish("a", b"1")
    assert await alone.gather("a") == ()
