"""Work that others depend on: run once for all who wait, and to its end whoever leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError

log = Logger()

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """
    Shares running work by key: who asks while it runs waits for the same result.

    A waiter that is cancelled leaves; the work goes on for the others, and to its end when nobody is left. An error
    that nobody waits for any more is logged.
    """

    def __init__(self) -> None:
        self._running: dict[K, list[Deferred[T]]] = {}

    async def run(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, or of a run of the same key that is already under way."""
        waiters = self._running.get(key)
        mine: Deferred[T] = Deferred()
        if waiters is None:
            self._running[key] = [mine]
            Deferred.fromCoroutine(self._work(work)).addBoth(self._done, key)
        else:
            waiters.append(mine)
        return await mine

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    def _done(self, outcome: Any, key: K) -> None:
        waiting = [waiter for waiter in self._running.pop(key) if not waiter.called]
        if not waiting and isinstance(outcome, Failure):
            log.failure("failed after everybody who asked had left", failure=outcome)
        for waiter in waiting:
            if isinstance(outcome, Failure):
                waiter.errback(outcome)
            else:
                waiter.callback(outcome)


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
        elif isinstance(outcome, Failure) and outcome.check(PkgrepoError):
            log.info("refused after the one who asked had left: {error}", error=str(outcome.value))
        elif isinstance(outcome, Failure):
            log.failure("failed after the one who asked had left", failure=outcome)

    Deferred.fromCoroutine(run()).addBoth(done)
    return await mine
