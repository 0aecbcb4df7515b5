"""The bus between the workers of a master: news of typed topics, and questions that all others answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as LateError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import spawn

from .messages import Answered, Asked, Gathered, Message, Published

log = Logger()

GATHER_S = 5.0  # seconds after which the answers of the others are done without; the master waits for less

T = TypeVar("T")
Receive = Callable[[bytes], None]
Answer = Callable[[], Awaitable[bytes]]


class Peers(Protocol):
    """Messages to the other workers. All of them are given up when a process ends: nothing may depend on them."""

    def publish(self, topic: str, data: bytes) -> None:
        """Send news to all others; they arrive within milliseconds."""

    def subscribe(self, topic: str, receive: Receive) -> None:
        """Have a function called with the news of others."""

    def answer(self, topic: str, answer: Answer) -> None:
        """Have a function called for the questions of others."""

    async def gather(self, topic: str, own: bytes = b"") -> Sequence[bytes]:
        """The answers of all others that answer in time. ``own`` is the own answer, for what the master sums up."""


class Topic(Generic[T]):
    """A topic of news whose values are of one type, which msgspec encodes."""

    def __init__(self, name: str, kind: type[T]) -> None:
        self.name = name
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def publish(self, peers: Peers, value: T) -> None:
        """Send a value to all others."""
        peers.publish(self.name, msgspec.msgpack.encode(value))

    def subscribe(self, peers: Peers, receive: Callable[[T], Any]) -> None:
        """Have a function called with the values of others."""
        peers.subscribe(self.name, lambda data: receive(self._decode(data)))


class NoPeers:
    """There is only this process."""

    def publish(self, topic: str, data: bytes) -> None:
        """Send nothing."""

    def subscribe(self, topic: str, receive: Receive) -> None:
        """Nothing is ever received."""

    def answer(self, topic: str, answer: Answer) -> None:
        """There are no questions."""

    async def gather(self, _topic: str, _own: bytes = b"") -> Sequence[bytes]:
        """No other answers."""
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
        """Send news to the master, which passes them on."""
        self._send(Published(topic, data))

    def subscribe(self, topic: str, receive: Receive) -> None:
        """Have a function called with the news of others."""
        self._receivers.setdefault(topic, []).append(receive)

    def answer(self, topic: str, answer: Answer) -> None:
        """Have a function called for the questions of others."""
        self._answers[topic] = answer

    async def gather(self, topic: str, own: bytes = b"") -> Sequence[bytes]:
        """Ask the others, and wait for their answers for up to ``GATHER_S``."""
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
                failed = "a question of another worker about {topic} has no answer"
                spawn(self._answer(number, topic), failed, topic=topic)
            case Gathered(number, answers):
                waiting = self._waiting.get(number)
                if waiting is not None:
                    waiting.callback(answers)

    async def _answer(self, number: int, topic: str) -> None:
        answer = self._answers.get(topic)
        self._send(Answered(number, b"" if answer is None else await answer()))
