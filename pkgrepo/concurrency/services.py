"""Twisted's services with typed methods, tasks that run periodically, and tasks that are not awaited."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from twisted.application import service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import StorageFailed, StorageFull

log = Logger()
Work = Callable[[], Coroutine[Any, Any, None]]
_spawned: set[Deferred[None]] = set()


class Service(service.Service):
    """A part of the server that starts and stops with its parent."""

    def privilegedStartService(self) -> None:
        """Prepare what needs the privileges that twistd gives up before ``startService``."""
        super().privilegedStartService()  # type: ignore[no-untyped-call]

    def startService(self) -> None:
        """Mark the service as running."""
        super().startService()  # type: ignore[no-untyped-call]

    def stopService(self) -> Deferred[Any] | None:
        """Mark the service as stopped; what is returned fires when it has stopped, None: at once."""
        super().stopService()  # type: ignore[no-untyped-call]
        return None


class MultiService(service.MultiService):
    """A service that starts and stops the services in it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def setName(self, name: str) -> None:
        """Set the name by which the parent finds it. :raises RuntimeError: it has a parent already"""
        super().setName(name)  # type: ignore[no-untyped-call]

    def setServiceParent(self, parent: Any) -> None:
        """Join a parent, and start if that runs."""
        super().setServiceParent(parent)  # type: ignore[no-untyped-call]

    def privilegedStartService(self) -> None:
        """Let each service in it prepare what needs privileges."""
        super().privilegedStartService()  # type: ignore[no-untyped-call]

    def startService(self) -> None:
        """Start the services in it, in their order."""
        super().startService()  # type: ignore[no-untyped-call]

    def stopService(self) -> Deferred[Any]:
        """Stop the services in it, the last one first; fires when all have stopped."""
        stopped: Deferred[Any] = super().stopService()  # type: ignore[no-untyped-call]
        return stopped


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
            _log_failed(failure, self._failed, what=self._what)


def spawn(work: Coroutine[Any, Any, object], failed: str, **details: Any) -> None:
    """Start a task that is not awaited before the stop. An error is logged as ``failed``, a format of ``details``."""

    def ended(result: object) -> None:
        _spawned.discard(task)
        if isinstance(result, Failure) and not result.check(CancelledError):
            _log_failed(result, failed, **details)

    task: Deferred[Any] = Deferred.fromCoroutine(work)
    _spawned.add(task)
    task.addBoth(ended)


async def wait_for_spawned(reactor: IReactorTime, longest_s: float) -> None:
    """Wait until the tasks that were spawned have ended; those that take longer are cancelled."""
    with suppress(DeferredTimeout):
        await DeferredList(list(_spawned)).addTimeout(longest_s, reactor)


def _log_failed(failure: Failure, failed: str, **details: Any) -> None:
    """
    Log that work has failed.

    A storage or a catalog that fails is no fault of the work: that has no traceback, since all work says so, again and
    again.
    """
    if failure.check(StorageFailed, StorageFull):
        error = failure.value
        cause = None if error is None else error.__cause__
        told = str(error) if cause is None else f"{error} ({cause})"
        log.warn(f"{failed}: {{reason}}", reason=told, **details)
    else:
        log.failure(failed, failure=failure, **details)
