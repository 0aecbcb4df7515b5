"""
Work that is cheaper for several items together.

Items that arrive while others are worked on wait for each other. With a L{Linger} the first ones wait for a while, too.
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
class Linger:
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

    An item that comes alone is worked on at once, unless there is a ``linger``. An error of ``work`` is that of all
    items of the call.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Awaitable[None]], *, most: int, linger: Linger | None = None
    ) -> None:
        self._work = work
        self._most = most
        self._linger = linger if linger is not None and linger.seconds else None
        self._waiting: dict[K, _Queue[T]] = {}  # of the keys that are worked on, or linger
        self._lingering: dict[K, Deferred[None]] = {}
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
        if key in self._lingering and not self._lingers(waiting):
            self._lingering[key].cancel()
        return done

    @contextmanager
    def hurrying(self) -> Iterator[None]:
        """A block in which nothing lingers, since somebody waits for an item."""
        self._hurried += 1
        for each in list(self._lingering.values()):
            each.cancel()
        try:
            yield
        finally:
            self._hurried -= 1

    def _lingers(self, waiting: _Queue[T]) -> bool:
        linger = self._linger
        return (
            linger is not None
            and not self._hurried
            and len(waiting.items) < linger.enough
            and waiting.size < linger.enough_bytes
        )

    async def _run(self, key: K, waiting: _Queue[T]) -> None:
        due = 0  # items that have lingered
        while waiting.items:
            if not due:
                if self._linger is not None and self._lingers(waiting):
                    self._lingering[key] = deferLater(self._linger.reactor, self._linger.seconds)
                    with suppress(CancelledError):
                        await self._lingering[key]
                    del self._lingering[key]
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
