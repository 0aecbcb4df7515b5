"""
The processes of several nodes as peers: what workers of one master tell each other, over the database that nodes share.

An embedded database has one node, whose workers have their master for that.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.composition.databases import AnyCatalog
from pkgrepo.process.workers.messages import Answered, Asked, Gathered, Message, Published
from pkgrepo.process.workers.peers import NoPeers, Peers, WorkerPeers
from pkgrepo.repositories.clock import Clock, SystemClock
from pkgrepo.untrusted.strict_json import ERRORS

if TYPE_CHECKING:
    from pkgrepo.storage.catalog.postgresql import Nodes

log = Logger()

ANSWER_S = 2.0  # seconds for the answers to a question; a node that is paused or cut off does not answer


class _Question(msgspec.Struct, frozen=True, tag=True):
    asker: str
    number: int
    topic: str


class _Answer(msgspec.Struct, frozen=True, tag=True):
    asker: str
    number: int
    data: bytes


_News = Published | _Question | _Answer
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_News).decode


class NodeChannel:
    """Does for ``peers`` what a master does for its workers: passes on news, questions and answers."""

    def __init__(self, nodes: Nodes, reactor: IReactorTime) -> None:
        self.peers = WorkerPeers(self._send, reactor)
        self._nodes = nodes
        self._reactor = reactor
        self._own = secrets.token_hex(8)
        self._gathering: dict[int, _Gathering] = {}
        self._asked: dict[int, _Question] = {}
        self._last = 0
        nodes.subscribe(self._receive)

    def _send(self, message: Message) -> None:
        match message:
            case Published():
                self._nodes.send(_encode(message))
            case Asked(number, topic):
                asking = Deferred.fromCoroutine(self._ask(number, topic))
                asking.addErrback(_report)
            case Answered(number, data):
                question = self._asked.pop(number)
                self._nodes.send(_encode(_Answer(question.asker, question.number, data)))

    async def _ask(self, number: int, topic: str) -> None:
        others = await self._nodes.count_others()
        if not others:
            self.peers.receive(Gathered(number, []))
            return
        late = self._reactor.callLater(ANSWER_S, self._gathered, number)
        self._gathering[number] = _Gathering(others, late)
        self._nodes.send(_encode(_Question(self._own, number, topic)))

    def _gathered(self, number: int) -> None:
        gathering = self._gathering.pop(number)
        if gathering.late.active():
            gathering.late.cancel()
        self.peers.receive(Gathered(number, [each for each in gathering.answers if each]))

    def _receive(self, data: bytes) -> None:
        try:
            news = _decode(data)
        except ERRORS:  # of a newer or an older node
            return
        match news:
            case Published():
                self.peers.receive(news)
            case _Question():
                self._last += 1
                self._asked[self._last] = news
                self.peers.receive(Asked(self._last, news.topic))
            case _Answer(asker, number, answer):
                gathering = self._gathering.get(number)
                if asker == self._own and gathering is not None:
                    gathering.answers.append(answer)
                    if len(gathering.answers) == gathering.expected:
                        self._gathered(number)


class _Gathering:
    """The answers to a question, which is closed when ``late`` is due."""

    def __init__(self, expected: int, late: IDelayedCall) -> None:
        self.expected = expected
        self.late = late
        self.answers: list[bytes] = []


def nodes_of(catalog: AnyCatalog) -> Nodes | None:
    """What the catalog knows of other nodes; None if it is in a file, which has none."""
    nodes: Nodes | None = getattr(catalog, "nodes", None)  # its class cannot be imported without its driver
    return nodes


def clock_of(catalog: AnyCatalog) -> Clock:
    """The clock that all nodes share: that of the database's server, or of this machine."""
    clock: Clock | None = getattr(catalog, "clock", None)
    return SystemClock() if clock is None else clock


def peers_of(catalog: AnyCatalog, workers: Peers | None, reactor: IReactorTime) -> Peers:
    """All other processes: those of all nodes, or the other workers, if there are any."""
    nodes = nodes_of(catalog)
    return (workers or NoPeers()) if nodes is None else NodeChannel(nodes, reactor).peers


def _report(failure: Failure) -> None:
    log.warn("the other nodes could not be asked: {reason}", reason=failure.getErrorMessage())
