"""Tasks that run every so many seconds while the server runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import StorageFull

from .services import Service

log = Logger()

Work = Callable[[], Coroutine[Any, Any, None]]


class PeriodicTask(Service):
    """
    Calls ``work`` at start and then every ``every_s`` seconds. Several processes may run it concurrently.

    At stop a call that is under way is cancelled. With ``last``, which writes what is only in memory, nothing is
    cancelled: the first call comes after ``every_s`` seconds, and at stop ``last`` is called and awaited.

    A call that fails is logged as ``failed``, a format that may name ``what``, the work in words; the next call comes
    all the same.
    """

    def __init__(
        self,
        work: Work,
        reactor: IReactorTime,
        *,
        every_s: float,
        what: str,
        failed: str = "{what} failed",
        last: Work | None = None,
    ) -> None:
        self._every_s = every_s
        self._what = what
        self._failed = failed
        self._last = last
        self._loop = LoopingCall(self._run, work)
        self._loop.clock = reactor
        self._running: Deferred[None] | None = None

    def startService(self) -> None:
        """Start the calls."""
        super().startService()
        self._loop.start(self._every_s, now=self._last is None)

    def stopService(self) -> Deferred[None] | None:
        """End the calls, as the class says."""
        super().stopService()
        self._loop.stop()
        if self._last is not None:
            return self._run(self._last)
        if self._running is not None:
            self._running.cancel()
        return self._running

    def _run(self, work: Work) -> Deferred[None]:
        self._running = Deferred.fromCoroutine(work()).addErrback(self._report)
        return self._running

    def _report(self, failure: Failure) -> None:
        if failure.check(StorageFull):
            log.warn("{what} waits for room: {reason}", what=self._what, reason=str(failure.value))
        elif not failure.check(CancelledError):
            log.failure(self._failed, failure=failure, what=self._what)
