"""
Permits for work of which only so much may run at once, and a fair queue for those who wait.

Who waits names a path, such as ("new", network, address). The queue is a tree of those paths: at each level the
branches take turns (round robin), and within one path the first come is the first served. So however many wait below
one branch, another branch waits for one of them at most.

============================  =====================================================================================
what happens to a waiter      what becomes of permits and queue
============================  =====================================================================================
a permit is free              it is given at once; nobody waited then
a permit comes back           it goes to the next waiter
it is cancelled               it leaves the queue; the permits are untouched
the queue is full             the newest waiter of the longest branch is refused, which may be the one that comes
============================  =====================================================================================

A permit is given back exactly once, at the end of its ``async with`` block, whatever ends that. Waiters are resumed in
a loop, ``BURST`` in one turn of the reactor: each may give its permit back before it returns, and neither deep calls
nor a long turn come of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from functools import partial
from types import TracebackType

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

BURST = 16  # waiters in one turn of the reactor: at most some 10 ms when each is refused and answered

Path = Sequence[Hashable]


class QueueFull(Exception):  # noqa: N818 - says what happened, as all errors of the house
    """Too many wait already."""


class Permits:
    """
    ``count`` permits, and at most ``most_waiting`` waiters.

    ``async with permits.one(path)`` waits for a permit and holds it for the block.
    """

    def __init__(self, count: int, reactor: IReactorTime, *, most_waiting: int | None = None) -> None:
        self._free = count
        self._reactor = reactor
        self._most_waiting = most_waiting
        self._queue = _Branch()
        self._handing_over = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._queue.size

    def one(self, path: Path = ()) -> Permit:
        """A permit to be waited for. Paths that begin alike go on alike: none is the beginning of another."""
        return Permit(self, path)

    async def acquire(self, path: Path = ()) -> None:
        """
        Wait for a permit, which the caller gives back with one ``release``.

        :raises QueueFull: too many wait, and most of them nearby
        """
        if self._free and not self._queue.size:
            self._free -= 1
            return
        waiter: Deferred[None] = Deferred(partial(self._queue.remove, path))
        self._queue.add(path, waiter)
        if self._most_waiting is not None and self._queue.size > self._most_waiting:
            self._queue.take_longest().errback(QueueFull())
        await waiter

    def release(self) -> None:
        """Give a permit back."""
        self._free += 1
        if not self._handing_over:
            self._hand_over()

    def _hand_over(self) -> None:
        self._handing_over = True
        for _ in range(BURST):
            if not self._free or not self._queue.size:
                self._handing_over = False
                return
            self._free -= 1
            self._queue.take_next().callback(None)
        self._reactor.callLater(0, self._hand_over)


class Permit:
    """One permit, held within an ``async with`` block."""

    def __init__(self, permits: Permits, path: Path) -> None:
        self._permits = permits
        self._path = path

    async def __aenter__(self) -> None:
        await self._permits.acquire(self._path)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._permits.release()


class _Branch:
    """Waiters of one path, and the branches below it in the order of their turns."""

    def __init__(self) -> None:
        self.size = 0
        self._waiters: deque[Deferred[None]] = deque()
        self._branches: dict[Hashable, _Branch] = {}
        self._last: Hashable = None  # the branch that had its turn last

    def add(self, path: Path, waiter: Deferred[None]) -> None:
        self.size += 1
        if not path:
            self._waiters.append(waiter)
            return
        if path[0] not in self._branches:
            self._open(path[0])
        self._branches[path[0]].add(path[1:], waiter)

    def remove(self, path: Path, waiter: Deferred[None]) -> None:
        self.size -= 1
        if path:
            branch = self._branches[path[0]]
            branch.remove(path[1:], waiter)
            if not branch.size:
                del self._branches[path[0]]
        else:
            self._waiters.remove(waiter)

    def take_next(self) -> Deferred[None]:
        """The waiter whose turn it is; its branch goes to the end of the row."""
        self.size -= 1
        if self._waiters:
            return self._waiters.popleft()
        key = self._last = next(iter(self._branches))
        branch = self._branches.pop(key)
        waiter = branch.take_next()
        if branch.size:
            self._branches[key] = branch
        return waiter

    def _open(self, key: Hashable) -> None:
        if len(self._branches) == 1 and self._last in self._branches:
            self._branches = {key: _Branch(), **self._branches}  # the only other one has just had its turn
        else:
            self._branches[key] = _Branch()

    def take_longest(self) -> Deferred[None]:
        """The newest waiter of the longest branch of the longest branch, and so on."""
        self.size -= 1
        if self._waiters:
            return self._waiters.pop()
        key = max(reversed(self._branches), key=lambda each: self._branches[each].size)
        branch = self._branches[key]
        waiter = branch.take_longest()
        if not branch.size:
            del self._branches[key]
        return waiter
