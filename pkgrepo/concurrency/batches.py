"""
Work that is cheaper for several items together.

Items that arrive while others are worked on wait for each other. With a L{Linger} the first ones wait for a while, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@frozen
class Linger:
    """How long items wait for others before they are worked on: ``seconds``, or until ``enough`` of one key wait."""

    reactor: IReactorTime
    seconds: float
    enough: int


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
        self._waiting: dict[K, list[tuple[T, Deferred[None]]]] = {}  # of the keys that are worked on, or linger
        self._lingering: dict[K, Deferred[None]] = {}
        self._hurried = 0

    def add(self, key: K, item: T) -> Deferred[None]:
        """Work on an item; fires when that is done."""
        done: Deferred[None] = Deferred()
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [(item, done)]
            Deferred.fromCoroutine(self._run(key))
            return done
        waiting.append((item, done))
        if key in self._lingering and not self._lingers(len(waiting)):
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

    def _lingers(self, count: int) -> bool:
        return self._linger is not None and not self._hurried and count < self._linger.enough

    async def _run(self, key: K) -> None:
        while waiting := self._waiting[key]:
            if self._linger is not None and self._lingers(len(waiting)):
                self._lingering[key] = deferLater(self._linger.reactor, self._linger.seconds)
                with suppress(CancelledError):
                    await self._lingering[key]
                del self._lingering[key]
                waiting = self._waiting[key]
            batch, self._waiting[key] = waiting[: self._most], waiting[self._most :]
            failure: Failure | None = None
            try:
                await self._work([item for item, _ in batch])
            except Exception:  # noqa: BLE001 - passed on to the callers
                failure = Failure()
            for _, done in batch:
                done.callback(None) if failure is None else done.errback(failure)
        del self._waiting[key]
