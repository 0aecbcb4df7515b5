"""The other workers of the same master, as parts of a worker see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as LateError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from .messages import Answered, Asked, Gathered, Message, Published

log = Logger()

GATHER_S = 5.0  # seconds after which the answers of the others are done without; the master waits for less

Receive = Callable[[bytes], None]
Answer = Callable[[], Awaitable[bytes]]


class Peers(Protocol):
    """Messages to the other workers. All of them are given up when a process ends: nothing may depend on them."""

    def publish(self, topic: str, data: bytes) -> None:
        """Send news to all others, who get them within milliseconds."""

    def subscribe(self, topic: str, receive: Receive) -> None:
        """Have a function called with the news of others."""

    def answer(self, topic: str, answer: Answer) -> None:
        """Have a function called for the questions of others."""

    async def gather(self, topic: str, own: bytes = b"") -> Sequence[bytes]:
        """The answers of all others that answer in time. ``own`` is the own answer, for what the master sums up."""


class NoPeers:
    """There is only this process."""

    def publish(self, topic: str, data: bytes) -> None:
        """See L{Peers.publish}."""

    def subscribe(self, topic: str, receive: Receive) -> None:
        """See L{Peers.subscribe}."""

    def answer(self, topic: str, answer: Answer) -> None:
        """See L{Peers.answer}."""

    async def gather(self, _topic: str, _own: bytes = b"") -> Sequence[bytes]:
        """See L{Peers.gather}."""
        return ()


class WorkerPeers:
    """The other workers, through the master, to which ``send`` sends a message."""

    def __init__(self, send: Callable[[Message], None], reactor: IReactorTime) -> None:
        self._send = send
        self._reactor = reactor
        self._numbers = count(1)
        self._receivers: dict[str, list[Receive]] = {}
        self._answers: dict[str, Answer] = {}
        self._waiting: dict[int, Deferred[Sequence[bytes]]] = {}

    def publish(self, topic: str, data: bytes) -> None:
        """See L{Peers.publish}."""
        self._send(Published(topic, data))

    def subscribe(self, topic: str, receive: Receive) -> None:
        """See L{Peers.subscribe}."""
        self._receivers.setdefault(topic, []).append(receive)

    def answer(self, topic: str, answer: Answer) -> None:
        """See L{Peers.answer}."""
        self._answers[topic] = answer

    async def gather(self, topic: str, own: bytes = b"") -> Sequence[bytes]:
        """See L{Peers.gather}."""
        number = next(self._numbers)
        waiting = self._waiting[number] = Deferred[Sequence[bytes]]()
        self._send(Asked(number, topic, own))
        try:
            return await waiting.addTimeout(GATHER_S, self._reactor)
        except LateError:
            log.warn("the other workers did not answer about {topic}", topic=topic)
            return ()
        finally:
            del self._waiting[number]

    def receive(self, message: Message) -> None:
        """Handle a message of the master."""
        match message:
            case Published(topic, data):
                for each in self._receivers.get(topic, ()):
                    try:
                        each(data)
                    except Exception:  # noqa: BLE001 - an error of ours must not close the channel
                        log.failure("news of another worker about {topic} could not be used", topic=topic)
            case Asked(number, topic):
                answering = Deferred.fromCoroutine(self._answer(number, topic))
                answering.addErrback(_report, topic)
            case Gathered(number, answers):
                waiting = self._waiting.get(number)
                if waiting is not None:
                    waiting.callback(answers)

    async def _answer(self, number: int, topic: str) -> None:
        answer = self._answers.get(topic)
        self._send(Answered(number, b"" if answer is None else await answer()))


def _report(failure: Failure, topic: str) -> None:
    log.failure("a question of another worker about {topic} has no answer", failure=failure, topic=topic)
