"""Calls that several callers wait for: one call for all, not cancelled when one of them is; and a cache of such."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import PkgrepoError

log = Logger()

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@define(eq=False)
class _Call(Generic[T]):
    """A call under way, and the Deferreds of its callers."""

    waiters: list[Deferred[T]]
    work: Deferred[T] = field(factory=Deferred)


class SingleFlight(Generic[K, T]):
    """
    Calls under way by key: a caller that asks for a key while its call runs gets the result of that call.

    A caller that is cancelled does not cancel the call. When all are cancelled the call still runs to its end, and an
    error of it is logged; with ``cancel_unawaited`` it is cancelled instead.
    """

    def __init__(self, *, cancel_unawaited: bool = False) -> None:
        self._running: dict[K, _Call[T]] = {}
        self._cancel_unawaited = cancel_unawaited

    def __contains__(self, key: K) -> bool:
        """Whether a call of the key is under way."""
        return key in self._running

    async def run(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, or of the call of the same key that is already under way."""
        call = self._running.get(key)
        mine: Deferred[T] = Deferred()
        if call is None:
            call = self._running[key] = _Call([mine])
            call.work = Deferred.fromCoroutine(self._work(work))
            call.work.addBoth(self._done, key, call)
        else:
            call.waiters.append(mine)
        try:
            return await mine
        except CancelledError:
            if self._cancel_unawaited and all(waiter.called for waiter in call.waiters):
                self._forget(key, call)  # a later caller starts a new call
                call.work.cancel()
            raise

    async def _work(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    def _done(self, outcome: Any, key: K, call: _Call[T]) -> None:
        self._forget(key, call)
        waiting = [waiter for waiter in call.waiters if not waiter.called]
        if not waiting and isinstance(outcome, Failure):
            _log_unawaited(outcome)
        for waiter in waiting:
            if isinstance(outcome, Failure):
                waiter.errback(outcome)
            else:
                waiter.callback(outcome)

    def _forget(self, key: K, call: _Call[T]) -> None:
        if self._running.get(key) is call:
            del self._running[key]


class StampCache(Generic[K, T]):
    """
    Values that are made for a stamp, such as a serial: the latest one of each of the ``most`` keys used last.

    Of several callers with one key and stamp one makes the value, for all of them.
    """

    def __init__(self, most: int) -> None:
        self._kept: Lru[K, tuple[Hashable, T]] = Lru(most)
        self._flight: SingleFlight[tuple[K, Hashable], T] = SingleFlight()

    def latest(self, key: K) -> T | None:
        """The value that was made last for a key, whatever its stamp."""
        kept = self._kept.get(key)
        return None if kept is None else kept[1]

    def find(self, key: K, stamp: Hashable) -> T | None:
        """The value of a key if it was made for this stamp, or None."""
        kept = self._kept.get(key)
        return kept[1] if kept is not None and kept[0] == stamp else None

    def forget(self, key: K) -> None:
        """Remove the value of a key."""
        self._kept.pop(key)

    async def get(self, key: K, stamp: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The value of a key for this stamp, which ``make`` makes if it is not there."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] == stamp:
            return kept[1]

        async def keep() -> T:
            made = await make()
            self._kept.put(key, (stamp, made))
            return made

        return await self._flight.run((key, stamp), keep)


async def shield(work: Awaitable[T]) -> T:
    """
    The result of ``work``, which runs to its end even when the caller is cancelled.

    An error is then logged: a refusal as a sentence, any other with its traceback.
    """
    mine: Deferred[T] = Deferred()

    async def run() -> T:
        return await work

    def done(outcome: Any) -> None:
        if not mine.called:
            (mine.errback if isinstance(outcome, Failure) else mine.callback)(outcome)
        elif isinstance(outcome, Failure):
            _log_unawaited(outcome)

    Deferred.fromCoroutine(run()).addBoth(done)
    return await mine


def _log_unawaited(failure: Failure) -> None:
    """Log an error of a call all of whose callers were cancelled."""
    if failure.check(PkgrepoError):
        log.info("refused after everybody who asked had left: {error}", error=str(failure.value))
    elif not failure.check(CancelledError):
        log.failure("failed after everybody who asked had left", failure=failure)
