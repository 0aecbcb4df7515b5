"""
What a master and a worker send each other: frames of 32 bits of length and a message in MessagePack.

=================  =========================  ==============================================================
from a worker      to it                      meaning
=================  =========================  ==============================================================
                   ``Begin``                  it may open the catalog, and serve
``Ready``                                     it accepts connections
``Failed``                                    it cannot start
``Alive``                                     its reactor runs; sent every ``ALIVE_S`` seconds
``Counted``                                   its metrics at its end
``Published``      ``Published``              news for all other workers
``Asked``          ``Asked``                  a question for all other workers; each of them answers
``Answered``       ``Gathered``               one answer; the answers of all of them
=================  =========================  ==============================================================

A worker whose socket is closed has no master any more, and stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from twisted.internet.protocol import Factory, connectionDone
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

ALIVE_S: Final = 5.0
LARGEST: Final = 64 * 1024 * 1024  # bytes of a message; the metrics of many workers are some MB


class Message(msgspec.Struct, frozen=True, tag=True):
    """A message."""


class Begin(Message, frozen=True):
    """Until then a worker only imports its program, while the first one upgrades the catalog."""


class Ready(Message, frozen=True):
    """``password`` is that of the first admin, if it was generated just now."""

    addresses: list[str]
    password: str | None = None


class Failed(Message, frozen=True):
    """``reason`` is a sentence."""

    reason: str


class Alive(Message, frozen=True):
    """The sender's reactor runs."""


class Counted(Message, frozen=True):
    """The metrics of the sender, in the text format of Prometheus."""

    text: bytes


class Published(Message, frozen=True):
    """News about a topic."""

    topic: str
    data: bytes


class Asked(Message, frozen=True):
    """A question about a topic; ``own`` is the sender's own answer to it, for the master."""

    number: int
    topic: str
    own: bytes = b""


class Answered(Message, frozen=True):
    """The answer to the question with this number."""

    number: int
    data: bytes


class Gathered(Message, frozen=True):
    """The answers to the question with this number."""

    number: int
    answers: list[bytes]


_Any = Begin | Ready | Failed | Alive | Counted | Published | Asked | Answered | Gathered
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Any).decode


class Channel(Int32StringReceiver):
    """One end of a socket pair. ``receive`` gets each message; ``closed`` is called when the other end is closed."""

    MAX_LENGTH = LARGEST

    def __init__(self, receive: Callable[[Message], None], closed: Callable[[], None]) -> None:
        self._receive = receive
        self._closed = closed

    def send(self, message: Message) -> None:
        """Send a message; nothing happens when the other end is closed."""
        if self.transport is not None and self.connected:
            self.sendString(_encode(message))  # type: ignore[no-untyped-call]

    def stringReceived(self, string: bytes) -> None:
        """Decode a message."""
        self._receive(_decode(string))

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: ARG002 - Twisted's signature
        """Notice that the other process has ended."""
        self._closed()


class ChannelFactory(Factory):
    """A factory of one channel."""

    noisy = False

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def buildProtocol(self, _address: object) -> Channel:
        """The channel."""
        return self._channel
