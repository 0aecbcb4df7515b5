"""Time limits of a single wait, and of a whole request."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from attrs import define, frozen
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


@frozen
class Deadline:
    """The end of the time for a whole request, in the reactor's seconds. ``total_s`` is what it had; None: no end."""

    reactor: IReactorTime
    total_s: float | None
    at: float

    @classmethod
    def start(cls, total_s: float | None, reactor: IReactorTime) -> Deadline:
        """A deadline in ``total_s`` seconds from now."""
        return cls(reactor, total_s, math.inf if total_s is None else reactor.seconds() + total_s)

    @property
    def left_s(self) -> float:
        """Seconds until then."""
        return self.at - self.reactor.seconds()

    async def wait(self, work: Deferred[T], seconds: float, reason: str) -> T:
        """The result of ``work``, as `within` has it. :raises TimedOut: after ``seconds``, or at the deadline"""
        if self.left_s < seconds:
            seconds, reason = (
                self.left_s,
                f"it did not send its answer within {self.total_s:g} s (proxy.document_timeout)",
            )
        return await within(seconds, work, self.reactor, reason)
