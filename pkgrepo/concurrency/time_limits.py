"""Time limits of a single wait."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

T = TypeVar("T")


@define
class TimedOut(Exception):  # noqa: N818 - named for what happened
    """The time is over; ``reason`` is a clause for people."""

    reason: str

    def __str__(self) -> str:
        return self.reason


async def within(seconds: float, work: Deferred[T], reactor: IReactorTime, reason: str) -> T:
    """
    The result of ``work``. When the time is over, or the caller is cancelled, ``work`` is cancelled.

    The caller then gets L{TimedOut} or ``CancelledError``, whatever ``work`` makes of its cancellation.

    :raises TimedOut: with ``reason``
    """
    outcome: Deferred[T] = Deferred()

    def relay(result: Any) -> None:
        if not outcome.called:
            (outcome.errback if isinstance(result, Failure) else outcome.callback)(result)

    timer = reactor.callLater(max(seconds, 0), lambda: outcome.errback(TimedOut(reason)))
    work.addBoth(relay)
    try:
        return await outcome
    finally:
        if timer.active():
            timer.cancel()
        work.cancel()
