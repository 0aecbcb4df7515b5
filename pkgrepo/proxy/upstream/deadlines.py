"""The time limit of a whole request."""

from __future__ import annotations

import math
from typing import TypeVar

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.time_limits import within

T = TypeVar("T")


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

    async def wait(self, work: Deferred[T], seconds: float | None = None, reason: str = "") -> T:
        """
        The result of ``work``, as `within` has it; with ``seconds`` it has no more of them, for ``reason``.

        :raises TimedOut: after ``seconds``, or at the deadline
        """
        if seconds is None or self.left_s < seconds:
            if self.total_s is None:
                return await work
            seconds, reason = (
                self.left_s,
                f"it did not send its answer within {self.total_s:g} s (proxy.document_timeout)",
            )
        return await within(seconds, work, self.reactor, reason)
