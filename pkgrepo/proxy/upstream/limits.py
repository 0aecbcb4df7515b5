"""Limits of requests to upstreams: the deadline of a whole request, the permits of a host, and when to try again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.time_limits import within
from pkgrepo.errors import UpstreamFailed, UpstreamLimited, UpstreamUnavailable
from pkgrepo.outbound.urls import Origin

T = TypeVar("T")

MOST_WAITING = 2000  # requests that wait for one host
LONGEST_WAIT_S = 60.0  # seconds; clients give up after about as long

MOST_TRIES = 3
TRIES_WITH_OLD = 2  # of a question whose earlier response is served if they all fail: a client waits for it
FIRST_PAUSE_S = 0.25
SHORT_S = 5.0  # a longer wait than this is for the client to decide
UNKNOWN_LIMIT_S = 5.0  # for a 429 without Retry-After


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
        The result of ``work``, as ``within`` has it; with ``seconds`` it has no more of them, for ``reason``.

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


class HostPermits:
    """At most ``count`` requests at a time for each host; clients that wait for one host are served in turn."""

    def __init__(self, count: int, reactor: IReactorTime) -> None:
        self._count = count
        self._reactor = reactor
        self._semaphores: dict[Origin, FairSemaphore] = {}
        self._users: Counter[Origin] = Counter()  # who hold or wait; a semaphore without any is dropped

    async def acquire(self, origin: Origin, client: Hashable, deadline: Deadline) -> None:
        """
        Wait for a permit, which the caller releases once.

        ``client`` is the one of a route in a repository: others have routes of this name.

        :raises QueueFull: too many wait for one; :raises TimedOut: there was none for ``LONGEST_WAIT_S``
        """
        semaphore = self._semaphores.get(origin)
        if semaphore is None:
            semaphore = FairSemaphore(self._count, self._reactor, most_waiting=MOST_WAITING)
            self._semaphores[origin] = semaphore
        self._users[origin] += 1
        if semaphore.acquire_now():
            return
        try:
            reason = f"{self._count} other requests to it are under way (proxy.max_connections_per_host)"
            acquiring = Deferred.fromCoroutine(semaphore.acquire((client,)))
            await deadline.wait(acquiring, LONGEST_WAIT_S, reason)
        except BaseException:
            self._leave(origin)
            raise

    def release(self, origin: Origin) -> None:
        """Return a permit."""
        self._semaphores[origin].release()
        self._leave(origin)

    def _leave(self, origin: Origin) -> None:
        self._users[origin] -= 1
        if not self._users[origin]:
            del self._users[origin], self._semaphores[origin]


def pause_before_retry(error: UpstreamFailed, tries: int, jitter: Callable[[], float]) -> float | None:
    """
    Seconds until the next try of an idempotent request that failed ``tries`` times; None: no other try mends it.

    ``jitter`` returns a number from 0 to 1.
    """
    if not isinstance(error, UpstreamUnavailable | UpstreamLimited):
        return None
    if error.retry_after_s is None:
        return FIRST_PAUSE_S * 3.0 ** (tries - 1) * (0.5 + jitter())
    return error.retry_after_s + jitter() if error.retry_after_s <= SHORT_S else None


def read_retry_after(value: str | None, now_s: float) -> float | None:
    """
    Seconds in a Retry-After field (RFC 9110 section 10.2.3), at least 0; None if it is absent or malformed.

    ``now_s`` is the time of day, in seconds since the epoch.
    """
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_s, 0.0)
