"""Work that others depend on: run once for all who wait, and to its end whoever leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError

log = Logger()

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@define(eq=False)
class _Run(Generic[T]):
    """Work under way, and who waits for it."""

    waiters: list[Deferred[T]]
    work: Deferred[T] = field(factory=Deferred)


class SingleFlight(Generic[K, T]):
    """
    Shares running work by key: who asks while it runs waits for the same result.

    A waiter that is cancelled leaves; the work goes on for the others. When nobody is left it goes on to its end too,
    and an error that nobody waits for any more is logged; with ``abandon`` it is cancelled instead.
    """

    def __init__(self, *, abandon: bool = False) -> None:
        self._running: dict[K, _Run[T]] = {}
        self._abandon = abandon

    async def run(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, or of a run of the same key that is already under way."""
        run = self._running.get(key)
        mine: Deferred[T] = Deferred()
        if run is None:
            run = self._running[key] = _Run([mine])
            run.work = Deferred.fromCoroutine(self._work(work))
            run.work.addBoth(self._done, key, run)
        else:
            run.waiters.append(mine)
        try:
            return await mine
        except CancelledError:
            if self._abandon and all(waiter.called for waiter in run.waiters):
                self._forget(key, run)  # who comes now begins anew
                run.work.cancel()
            raise

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    def _done(self, outcome: Any, key: K, run: _Run[T]) -> None:
        self._forget(key, run)
        waiting = [waiter for waiter in run.waiters if not waiter.called]
        if not waiting and isinstance(outcome, Failure):
            _log_unheard(outcome)
        for waiter in waiting:
            if isinstance(outcome, Failure):
                waiter.errback(outcome)
            else:
                waiter.callback(outcome)

    def _forget(self, key: K, run: _Run[T]) -> None:
        if self._running.get(key) is run:
            del self._running[key]


async def shield(work: Awaitable[T]) -> T:
    """
    The result of ``work``, which runs to its end even when the one who waits is cancelled.

    An error that nobody waits for any more is logged; what was refused then, in a sentence.
    """
    mine: Deferred[T] = Deferred()

    async def run() -> T:
        return await work

    def done(outcome: Any) -> None:
        if not mine.called:
            (mine.errback if isinstance(outcome, Failure) else mine.callback)(outcome)
        elif isinstance(outcome, Failure):
            _log_unheard(outcome)

    Deferred.fromCoroutine(run()).addBoth(done)
    return await mine


def _log_unheard(failure: Failure) -> None:
    """Log what nobody waits for any more: a refusal in a sentence, an error with its traceback."""
    if failure.check(PkgrepoError):
        log.info("refused after everybody who asked had left: {error}", error=str(failure.value))
    elif not failure.check(CancelledError):
        log.failure("failed after everybody who asked had left", failure=failure)
