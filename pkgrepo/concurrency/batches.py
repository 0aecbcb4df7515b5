"""Work that is cheaper for several items together: those that arrive while some are worked on wait for each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Batches(Generic[K, T]):
    """
    Calls ``work`` with the items of one key, in order, at most ``most`` at a time, and never twice at once for a key.

    An item that comes alone is worked on at once. An error of ``work`` is that of all items of the call.
    """

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[None]], *, most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: dict[K, list[tuple[T, Deferred[None]]]] = {}  # of the keys that are worked on

    def add(self, key: K, item: T) -> Deferred[None]:
        """Work on an item; fires when that is done."""
        done: Deferred[None] = Deferred()
        if key in self._waiting:
            self._waiting[key].append((item, done))
        else:
            self._waiting[key] = [(item, done)]
            Deferred.fromCoroutine(self._run(key))
        return done

    async def _run(self, key: K) -> None:
        while waiting := self._waiting[key]:
            batch, self._waiting[key] = waiting[: self._most], waiting[self._most :]
            failure: Failure | None = None
            try:
                await self._work([item for item, _ in batch])
            except Exception:  # noqa: BLE001 - passed on to the callers
                failure = Failure()
            for _, done in batch:
                done.callback(None) if failure is None else done.errback(failure)
        del self._waiting[key]
