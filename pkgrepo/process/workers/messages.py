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
                   ``Cover``                  accept connections at the sockets of another slot, too
                   ``Uncover``                the other slot has a worker again
=================  =========================  ==============================================================

A worker whose socket is closed has no master any more, and stops.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from twisted.internet.interfaces import IFileDescriptorReceiver
from twisted.internet.protocol import Factory, connectionDone
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

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


class Cover(Message, frozen=True):
    """The listening sockets of a slot, which are as many descriptors that come with the message."""

    slot: int
    sockets: int


class Uncover(Message, frozen=True):
    """The receiver is to close what it got for this slot."""

    slot: int


_Any = Begin | Ready | Failed | Alive | Counted | Published | Asked | Answered | Gathered | Cover | Uncover
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Any).decode


@implementer(IFileDescriptorReceiver)
class Channel(Int32StringReceiver):
    """
    One end of a socket pair. ``receive`` gets each message; ``closed`` is called when the other end is closed.

    ``descriptors`` are those that came with messages; a caller that takes one closes it.
    """

    MAX_LENGTH = LARGEST

    def __init__(self, receive: Callable[[Message], None], closed: Callable[[], None]) -> None:
        self._receive = receive
        self._closed = closed
        self.descriptors: deque[int] = deque()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """
        Send a message; nothing happens when the other end is closed.

        The descriptors stay the caller's, and have to be open until the message was written.
        """
        transport: Any = self.transport  # IUNIXTransport
        if transport is not None and self.connected:
            for each in descriptors:
                transport.sendFileDescriptor(each)
            self.sendString(_encode(message))  # type: ignore[no-untyped-call]

    def stringReceived(self, string: bytes) -> None:
        """Decode a message."""
        self._receive(_decode(string))

    def fileDescriptorReceived(self, descriptor: int) -> None:
        """Keep a descriptor, which comes before the end of its message."""
        os.set_inheritable(descriptor, False)
        self.descriptors.append(descriptor)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: ARG002 - Twisted's signature
        """Notice that the other process has ended."""
        while self.descriptors:
            os.close(self.descriptors.popleft())
        self._closed()


class ChannelFactory(Factory):
    """A factory of one channel."""

    noisy = False

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def buildProtocol(self, _address: object) -> Channel:
        """The channel."""
        return self._channel
