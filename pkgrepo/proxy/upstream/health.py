"""
The health of an upstream host for one kind of request, and a circuit breaker, so that clients do not wait often.

==========  =============================================  ==========================================================
state       requests                                       next state
==========  =============================================  ==========================================================
closed      all are sent                                   open, after L{FAILURES} failures in a row that are of the
                                                           host, or of L{SUBJECTS} packages; or one of a host that
                                                           accepts no connection
open        none until a pause is over                     half-open, after the pause
half-open   one is sent, the probe; the others are         closed if it succeeds; open if it fails, with a pause twice
            refused meanwhile                              as long, or as long as before if it is a package that had
                                                           failed already; half-open again if it is cancelled
==========  =============================================  ==========================================================

A failure is of the host if there is no connection, or no response in time. An error in a response is one of a package:
it tells little about others, and that the host which could not be reached can be reached again.

Everything is in memory: each process learns by itself, and a restart begins with closed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.errors import UpstreamLimited, UpstreamUnavailable
from pkgrepo.model import UpstreamHealth, UpstreamState

FAILURES = 5  # in a row; a request with its retries makes up to three
SUBJECTS = 3  # different packages among them
MOST_SUBJECTS = 100  # that are remembered
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 120.0
LONGEST_LIMIT_S = 3600.0  # however long an upstream wants no requests

log = Logger()


class Health:
    """
    Successes and failures of requests of one kind to a host of the route ``route``; ``host`` is for the log.

    ``jitter`` returns a number from 0 to 1; it spreads the probes of several processes. ``time_of_day`` returns seconds
    since the epoch, for people: the clock of the reactor may begin at any time. ``on_change`` is called with
    the reason when the host is taken to be down, and with None at the first success, and when it answers again.
    """

    def __init__(
        self,
        route: str,
        host: str,
        reactor: IReactorTime,
        jitter: Callable[[], float],
        on_change: Callable[[str | None], None] = lambda _: None,
        *,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        self._time_of_day = time_of_day
        self._on_change = on_change
        self._route = route
        self._host = host
        self._reactor = reactor
        self._jitter = jitter
        self._failures_in_row = 0
        self._host_failures = 0  # among them
        self._subjects: set[str] = set()
        self._is_down = False
        self._is_host_down = False
        self._pause_s = 0.0
        self._open_until = 0.0
        self._limited_until = 0.0
        self._probing = False
        self._last_error: str | None = None
        self._last_success: float | None = None
        self._last_failure: float | None = None
        self._latency_s: float | None = None
        self._successes = 0
        self._failures = 0

    @property
    def state(self) -> UpstreamState:
        """The state of the circuit breaker."""
        if not self._is_down:
            return UpstreamState.CLOSED
        return UpstreamState.HALF_OPEN if self._reactor.seconds() >= self._open_until else UpstreamState.OPEN

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """
        The block in which a request is sent; it should call ``succeeded`` or ``failed`` within it.

        :raises UpstreamUnavailable: no request is sent at the moment; :raises UpstreamLimited: the upstream wants none
        """
        self._check()
        is_probe = self.state is UpstreamState.HALF_OPEN
        self._probing = self._probing or is_probe
        try:
            yield
        finally:
            if is_probe:
                self._probing = False

    def succeeded(self, latency_s: float) -> None:
        """Note a response, whose head took ``latency_s`` seconds."""
        if not (self._successes or self._is_down):
            self._on_change(None)
        self._begin_again()
        self._successes += 1
        self._latency_s = latency_s
        self._last_success = self._reactor.seconds()

    def failed(self, reason: str, subject: str | None = None, *, is_unreachable: bool = False) -> None:
        """
        Note that there was no response, or a bad one, or not to its end.

        ``subject`` is the package that the failure is about; None: it is one of the host. A host that accepts no
        connection in time ``is_unreachable``, and down at once: all others would wait as long.
        """
        now = self._reactor.seconds()
        if subject is not None and self._is_host_down and self.state is UpstreamState.HALF_OPEN:
            self._begin_again()
        self._failures += 1
        self._failures_in_row += 1
        self._last_error = reason
        self._last_failure = now
        is_known = subject in self._subjects
        if subject is None:
            self._host_failures += 1
        elif len(self._subjects) < MOST_SUBJECTS:
            self._subjects.add(subject)
        is_wide = self._host_failures + len(self._subjects) >= SUBJECTS
        if not self._is_down and (is_unreachable or (is_wide and self._failures_in_row >= FAILURES)):
            self._is_down = True
            self._is_host_down = subject is None
            log.warn(
                "upstream {route} at {host} failed {count}: {reason}",
                route=self._route,
                host=self._host,
                count=self._count(),
                reason=reason,
            )
            self._on_change(reason)
        if self._is_down and now >= self._open_until:
            self._pause_s = min(max(self._pause_s * (1 if is_known else 2), FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._open_until = now + self._pause_s * (0.75 + 0.5 * self._jitter())

    def note(self, reason: str) -> None:
        """Note, for people, that requests fail for a reason that says nothing about the host."""
        self._failures += 1
        self._last_error = reason
        self._last_failure = self._reactor.seconds()

    def limited(self, seconds: float) -> None:
        """Note that the upstream wants no requests for so long."""
        self._last_error = "it limits the rate of our requests"
        self._limited_until = self._reactor.seconds() + min(seconds, LONGEST_LIMIT_S)

    def report(self) -> UpstreamHealth:
        """A snapshot for people."""
        limited = self._limited_until > self._reactor.seconds()
        return UpstreamHealth(
            state=self.state,
            last_error=self._last_error,
            last_success_at=self._time(self._last_success),
            last_failure_at=self._time(self._last_failure),
            latency_s=self._latency_s,
            successes=self._successes,
            failures=self._failures,
            limited_until=self._time(self._limited_until) if limited else None,
        )

    def _time(self, seconds: float | None) -> datetime | None:
        if seconds is None:
            return None
        return datetime.fromtimestamp(self._time_of_day() - self._reactor.seconds() + seconds, UTC)

    def _begin_again(self) -> None:
        if self._is_down:
            log.info("upstream {route} at {host} answers again", route=self._route, host=self._host)
            self._on_change(None)
        self._failures_in_row = self._host_failures = 0
        self._subjects.clear()
        self._is_down = self._is_host_down = False
        self._pause_s = 0.0

    def _check(self) -> None:
        now = self._reactor.seconds()
        if now < self._limited_until:
            wait_s = math.ceil(self._limited_until - now)
            raise UpstreamLimited(self._route, f"it wants no requests for another {wait_s} s", wait_s)
        state = self.state
        if state is UpstreamState.OPEN or (state is UpstreamState.HALF_OPEN and self._probing):
            wait_s = max(math.ceil(self._open_until - now), 1)
            raise UpstreamUnavailable(
                self._route,
                f"it failed {self._count()}; the last time {self._last_error}",
                wait_s,
            )

    def _count(self) -> str:
        return "once" if self._failures_in_row == 1 else f"{self._failures_in_row} times in a row"
