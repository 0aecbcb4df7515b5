"""Time limits of a single wait."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

T = TypeVar("T")


@define
class TimedOut(Exception):  # noqa: N818 - named for what happened
    """The time is over; ``reason`` is a clause for people."""

    reason: str

    def __str__(self) -> str:
        return self.reason


class Patience:
    """A limit on the time without news of some work: ``heard`` begins it anew."""

    def __init__(self, seconds: float, reactor: IReactorTime, reason: str) -> None:
        self._seconds = max(seconds, 0)
        self._reactor = reactor
        self._reason = reason
        self._timer: IDelayedCall | None = None

    def heard(self) -> None:
        """There is news."""
        if self._timer is not None and self._timer.active():
            self._timer.reset(self._seconds)

    async def wait(self, work: Deferred[T]) -> T:
        """
        The result of ``work``. When the time is over, or the caller is cancelled, ``work`` is cancelled.

        The caller then gets L{TimedOut} or ``CancelledError``, whatever ``work`` makes of its cancellation.

        :raises TimedOut: with ``reason``
        """
        outcome: Deferred[T] = Deferred()

        def relay(result: Any) -> None:
            if not outcome.called:
                (outcome.errback if isinstance(result, Failure) else outcome.callback)(result)

        timer = self._timer = self._reactor.callLater(self._seconds, lambda: outcome.errback(TimedOut(self._reason)))
        work.addBoth(relay)
        try:
            return await outcome
        finally:
            if timer.active():
                timer.cancel()
            work.cancel()


async def within(seconds: float, work: Deferred[T], reactor: IReactorTime, reason: str) -> T:
    """The result of ``work``, as that of ``Patience.wait``. :raises TimedOut: with ``reason``"""
    return await Patience(seconds, reactor, reason).wait(work)
