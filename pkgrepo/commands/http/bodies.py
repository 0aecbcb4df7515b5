"""Bodies of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer
from twisted.internet.task import CooperativeTask, Cooperator, TaskStopped
from twisted.python.failure import Failure
from twisted.web.iweb import UNKNOWN_LENGTH, IBodyProducer
from zope.interface import implementer


@implementer(IBodyProducer)
class IteratorBody:
    """
    The body of a request, read from an iterator while it is sent. An error of the iterator is kept as ``error``.

    ``length`` is in bytes; without it, the body is sent in chunks. ``on_piece`` is called after each piece.
    """

    def __init__(self, pieces: Iterator[bytes], reactor: Any, length: int | None = None) -> None:
        self.length = UNKNOWN_LENGTH if length is None else length
        self.error: Exception | None = None
        self.on_piece: Callable[[], None] | None = None
        self._pieces = pieces
        self._cooperator = Cooperator(scheduler=lambda call: reactor.callLater(0, call))
        self._task: CooperativeTask[Iterator[None]] | None = None

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Send all pieces; fires after the last one."""
        task = self._task = self._cooperator.cooperate(self._write(consumer))
        done: Deferred[None] = Deferred()

        def ended(result: object) -> None:
            if isinstance(result, Failure):
                if result.check(TaskStopped):
                    return
                self.error = result.value if isinstance(result.value, Exception) else None
                done.errback(result)
            else:
                done.callback(None)

        task.whenDone().addBoth(ended)
        return done

    def pauseProducing(self) -> None:
        """Wait until the connection takes more."""
        if self._task is not None:
            self._task.pause()

    def resumeProducing(self) -> None:
        """Go on."""
        if self._task is not None:
            self._task.resume()

    def stopProducing(self) -> None:
        """End, and close the file that is being read; may be called more than once."""
        if self._task is not None:
            try:
                self._task.stop()
            except Exception:  # noqa: BLE001 - it has ended already
                self._task = None
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def _write(self, consumer: IConsumer) -> Iterator[None]:
        for piece in self._pieces:
            consumer.write(piece)
            if self.on_piece is not None:
                self.on_piece()
            yield
