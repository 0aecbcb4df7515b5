"""The tasks that wait until a transfer has got further."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure


class Waiters:
    """Deferreds that fire together. Each may be cancelled, also by what another one's firing does."""

    def __init__(self) -> None:
        self._waiting: list[Deferred[None]] = []

    def add(self) -> Deferred[None]:
        """A Deferred that fires, or fails, at the next ``wake``."""
        waiting: Deferred[None] = Deferred(self._forget)
        self._waiting.append(waiting)
        return waiting

    def wake(self, failure: Failure | None) -> None:
        """Fire all, or have all fail."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if each.called:  # cancelled by what one before it did
                continue
            if failure is not None:
                each.errback(failure)
            else:
                each.callback(None)

    def _forget(self, waiting: Deferred[None]) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
