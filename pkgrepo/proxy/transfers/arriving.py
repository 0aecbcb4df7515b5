"""A file that is still being transferred, as one client reads it, and the tasks that wait for more of it."""

from __future__ import annotations

import os
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure


class Source(Protocol):
    """The transfer behind a body."""

    @property
    def available(self) -> int:
        """How many bytes from the beginning readers may have."""

    def wait(self) -> Deferred[None]:
        """A Deferred that fires when the transfer has got further, and fails when it has failed."""

    def leave(self) -> None:
        """Count a reader that needs no more bytes."""


class ArrivingBody:
    """
    ``size`` bytes, of which the first ``available`` are in the file of a descriptor.

    With ``holds_parts`` the last byte of a part is held back, too, until the file is verified: a part that is complete
    would look right. Otherwise only that of the file is, for clients that verify what they put together of parts.

    It is for one reader, and the transfer goes on for it until ``close``. Not every response sends its body: an object
    that is freed closes itself, in whichever thread that happens.
    """

    def __init__(
        self, source: Source, size: int, descriptor: int, reactor: IReactorFromThreads, *, holds_parts: bool = False
    ) -> None:
        self.size = size
        self._holds_parts = holds_parts
        self._source = source
        self._descriptor = descriptor
        self._reactor = reactor
        self._closed = False

    def __del__(self) -> None:
        if not self._closed:
            self._close_descriptor()
            self._reactor.callFromThread(self._source.leave)

    def available(self, end: int) -> int:
        """How many bytes from the beginning may be sent of a part that ends before ``end``."""
        available = self._source.available
        return min(available, end - 1) if self._holds_parts and available < self.size else available

    def open(self) -> int:
        """The descriptor, which is the caller's from now on; only once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            raise RuntimeError("the body was opened before, or is closed")
        return descriptor

    def wait(self) -> Deferred[None]:
        """
        A Deferred that fires when ``available`` may have grown; it may be cancelled.

        It fails when the transfer has failed.
        """
        return self._source.wait()

    def close(self) -> None:
        """Need no more bytes; also twice."""
        if not self._closed:
            self._closed = True
            self._close_descriptor()
            self._source.leave()

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0:
            os.close(self.open())


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
