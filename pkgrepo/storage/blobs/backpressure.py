"""Back-pressure of one upload: pauses its producer while too many of its bytes are in memory."""

from __future__ import annotations

from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPullProducer, IPushProducer


class BackPressure:
    """
    Counts the bytes in memory. At ``high`` bytes it pauses the producer, and at ``low`` bytes it resumes it.

    Both kinds of producer work: a push producer is paused and resumed, a pull producer is asked for more bytes.
    """

    def __init__(self, *, high: int, low: int) -> None:
        self.buffered = 0
        self._high = high
        self._low = low
        self._taken = 0
        self._error: Exception | None = None
        self._waiting: list[Deferred[None]] = []
        self._push: IPushProducer | None = None
        self._pull: IPullProducer | None = None
        self._paused = False
        self._pulling = False

    @property
    def error(self) -> Exception | None:
        """The error that ``fail`` was called with, or None."""
        return self._error

    def register(self, producer: object, streaming: bool) -> None:
        """
        Control a producer from now on.

        :raises RuntimeError: one is registered already
        """
        if self._push is not None or self._pull is not None:
            raise RuntimeError("a producer is registered already")
        if self._error is not None:
            cast("IPullProducer", producer).stopProducing()
            return
        if not streaming:
            self._pull = cast("IPullProducer", producer)
            self._pull_more()
            return
        self._push = cast("IPushProducer", producer)
        self._paused = False
        self._pause()

    def unregister(self) -> None:
        """Forget the producer, which has given everything."""
        self._push = None
        self._pull = None

    def add(self, count: int) -> None:
        """Count bytes that are in memory now."""
        self.buffered += count
        self._taken += count
        self._pause()
        self._pull_more()

    def remove(self, count: int) -> None:
        """Count bytes that are no longer in memory."""
        self.buffered -= count
        if self.buffered > self._low:
            return
        self._wake()
        if self._push is not None and self._paused:
            self._paused = False
            self._push.resumeProducing()
        self._pull_more()

    def fail(self, error: Exception) -> None:
        """Stop the producer, and have ``drained`` raise ``error``. Only the first error is kept."""
        if self._error is not None:
            return
        self._error = error
        producer = self._push or self._pull
        self.unregister()
        if producer is not None:
            producer.stopProducing()
        self._wake()

    async def drained(self) -> None:
        """Wait until fewer than ``high`` bytes are in memory, or ``low`` after a pause."""
        if self._error is None and self.buffered >= self._high:
            waiter: Deferred[None] = Deferred()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(None)

    def _pause(self) -> None:
        if self._push is not None and not self._paused and self.buffered >= self._high:
            self._paused = True
            self._push.pauseProducing()

    def _pull_more(self) -> None:
        """Ask a pull producer for more until ``high`` is reached; it may write at once or later."""
        if self._pulling:
            return
        self._pulling = True
        try:
            while self._pull is not None and self.buffered < self._high:
                before = self._taken
                self._pull.resumeProducing()
                if self._taken == before:
                    return
        finally:
            self._pulling = False
