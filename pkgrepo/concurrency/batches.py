"""
Work that is cheaper for several items together.

Items that arrive while others are worked on wait for each other. With a L{BatchDelay} the first ones wait, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from attrs import Factory, define, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@frozen
class BatchDelay:
    """
    How long items wait for others before they are worked on: ``seconds``, or until ``enough`` of one key wait, or items
    of ``enough_bytes``.
    """

    reactor: IReactorTime
    seconds: float
    enough: int
    enough_bytes: int


@define(eq=False)
class _Queue(Generic[T]):
    """The items of one key that wait, and the sum of their sizes."""

    items: list[tuple[T, int, Deferred[None]]] = Factory(list)
    size: int = 0

    def add(self, item: T, size: int) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self.items.append((item, size, done))
        self.size += size
        return done

    def take(self, most: int) -> list[tuple[T, int, Deferred[None]]]:
        """Remove the first ones, at most so many."""
        taken, self.items = self.items[:most], self.items[most:]
        self.size -= sum(size for _, size, _ in taken)
        return taken


class Batches(Generic[K, T]):
    """
    Calls ``work`` with the items of one key, in order, at most ``most`` at a time, and never twice at once for a key.

    An item that comes alone is worked on at once, unless there is a ``delay``. An error of ``work`` is that of all
    items of the call.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Awaitable[None]], *, most: int, delay: BatchDelay | None = None
    ) -> None:
        self._work = work
        self._most = most
        self._delay = delay if delay is not None and delay.seconds else None
        self._waiting: dict[K, _Queue[T]] = {}  # of the keys that are worked on, or delayed
        self._delayed: dict[K, Deferred[None]] = {}
        self._hurried = 0

    def add(self, key: K, item: T, size: int = 0) -> Deferred[None]:
        """Work on an item of so many bytes; fires when that is done."""
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = _Queue()
            done = waiting.add(item, size)
            Deferred.fromCoroutine(self._run(key, waiting))
            return done
        done = waiting.add(item, size)
        if key in self._delayed and not self._may_wait(waiting):
            self._delayed[key].cancel()
        return done

    @contextmanager
    def without_delay(self) -> Iterator[None]:
        """A block in which nothing is delayed, since a client waits for an item."""
        self._hurried += 1
        for each in list(self._delayed.values()):
            each.cancel()
        try:
            yield
        finally:
            self._hurried -= 1

    def _may_wait(self, waiting: _Queue[T]) -> bool:
        delay = self._delay
        return (
            delay is not None
            and not self._hurried
            and len(waiting.items) < delay.enough
            and waiting.size < delay.enough_bytes
        )

    async def _run(self, key: K, waiting: _Queue[T]) -> None:
        due = 0  # items that have waited long enough
        while waiting.items:
            if not due:
                if self._delay is not None and self._may_wait(waiting):
                    self._delayed[key] = deferLater(self._delay.reactor, self._delay.seconds)
                    with suppress(CancelledError):
                        await self._delayed[key]
                    del self._delayed[key]
                due = len(waiting.items)
            batch = waiting.take(self._most)
            due = max(due - len(batch), 0)
            failure: Failure | None = None
            try:
                await self._work([item for item, _, _ in batch])
            except Exception:  # noqa: BLE001 - passed on to the callers
                failure = Failure()
            for _, _, done in batch:
                done.callback(None) if failure is None else done.errback(failure)
        del self._waiting[key]
