"""Gives up transfers that make no progress."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred

from .failures import Failed

T = TypeVar("T")


class IdleTimeout:
    """Cancels work that makes no progress for ``seconds``; a long transfer that goes on is never cancelled."""

    def __init__(self, reactor: Any, seconds: float) -> None:
        self._seconds = seconds
        self._timer = reactor.callLater(seconds, self._expire)
        self._work: Deferred[Any] | None = None
        self._expired = False

    def progress(self) -> None:
        """Begin to wait anew."""
        if self._timer.active():
            self._timer.reset(self._seconds)

    async def watch(self, work: Coroutine[Deferred[Any], Any, T]) -> T:
        """What the work returns. :raises Failed: it made no progress"""
        self._work = Deferred.fromCoroutine(work)
        try:
            return await self._work  # type: ignore[no-any-return]
        except CancelledError:
            if not self._expired:
                raise
            raise Failed(f"the server has sent and taken nothing for {self._seconds:g} seconds") from None
        finally:
            if self._timer.active():
                self._timer.cancel()

    def _expire(self) -> None:
        self._expired = True
        if self._work is not None:
            self._work.cancel()
