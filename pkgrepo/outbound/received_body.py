"""The bytes of an answer to a request of ours, between the connection and the reader, with back-pressure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss

HIGH_WATER = 256 * 1024  # bytes held before the connection is paused
PIECE_COST = 64  # bytes of memory that even the smallest piece takes


class BodyLost(Exception):  # noqa: N818 - named for what happened
    """The connection ended before the body."""


class ReceivedBody(Protocol):
    """Holds what arrived and was not read yet; the connection is paused at ``high_water`` bytes."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        self._high_water = high_water
        self.ended = False
        self.framed = True
        self._held: list[bytes] = []
        self._held_size = 0
        self._paused = False
        self._failure: BodyLost | None = None
        self._waiting: Deferred[None] | None = None

    def dataReceived(self, data: bytes) -> None:
        """Hold bytes from the connection."""
        self._held.append(data)
        self._held_size += max(len(data), PIECE_COST)
        if self._held_size >= self._high_water and not self._paused:
            self._paused = True
            cast("Any", self.transport).pauseProducing()
        self._wake()

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Note the end of the body, or of the connection before it."""
        self.ended = reason.check(ResponseDone, PotentialDataLoss) is not None
        self.framed = reason.check(PotentialDataLoss) is None
        if not self.ended:
            self._failure = BodyLost()
        self._wake()

    async def read(self, wait: Callable[[Deferred[None]], Awaitable[None]]) -> bytes:
        """
        What has arrived since the last call, at least one byte; ``b""`` at the end.

        ``wait`` waits for more, as long as the caller likes; what it raises is raised here.

        :raises BodyLost: the connection ended
        """
        while not self._held:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                return b""
            self._waiting = Deferred()
            await wait(self._waiting)
        held = b"".join(self._held)
        self._held, self._held_size = [], 0
        if self._paused:
            self._paused = False
            cast("Any", self.transport).resumeProducing()
        return held

    def abort(self) -> None:
        """Close the connection, unless the body has ended; then it is in the pool again."""
        if not self.ended and self._failure is None:
            self._failure = BodyLost()
            cast("Any", self.transport).stopProducing()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)
