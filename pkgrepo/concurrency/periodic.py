"""Work that comes round now and then, beside whatever the server does."""

from __future__ import annotations

from abc import ABC, abstractmethod

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import StorageFull

log = Logger()


class Rounds(Service, ABC):
    """
    Goes round at the start and every ``every_s`` seconds; several processes may do so at a time.

    ``what`` is the work, in words for the log: a round that fails is told, and the next one comes all the same.
    """

    def __init__(self, reactor: IReactorTime, *, every_s: float, what: str) -> None:
        self._every_s = every_s
        self._what = what
        self._loop = LoopingCall(self._run)
        self._loop.clock = reactor
        self._running: Deferred[None] | None = None

    @abstractmethod
    async def round(self) -> None:
        """One round, which may be broken off at any wait."""

    def startService(self) -> None:
        """Begin."""
        super().startService()  # type: ignore[no-untyped-call]
        self._loop.start(self._every_s)

    def stopService(self) -> Deferred[None] | None:
        """Break off the round in hand; the next process begins anew."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._loop.stop()
        if self._running is not None:
            self._running.cancel()
        return self._running

    def _run(self) -> Deferred[None]:
        self._running = Deferred.fromCoroutine(self.round()).addErrback(self._report)
        return self._running

    def _report(self, failure: Failure) -> None:
        if failure.check(StorageFull):
            log.warn("{what} waits for room: {reason}", what=self._what, reason=str(failure.value))
        elif not failure.check(CancelledError):
            log.failure("{what} failed", failure=failure, what=self._what)
