"""
A semaphore with a bounded and fair queue of waiters.

A waiter names a path, such as ("new", network, address). The queue is a tree of these paths: at each level the branches
are served in turn (round robin), and the waiters of one path in the order of their arrival. So however many wait in one
branch, a waiter of another branch waits for one of them at most.

============================  =====================================================================================
event                         effect
============================  =====================================================================================
acquire, a permit is free     it is granted at once; the queue is empty then
release                       the permit goes to the next waiter
a waiter is cancelled         it leaves the queue; no permit changes hands
acquire, the queue is full    the newest waiter of the longest branch gets L{QueueFull}; that may be the new one
============================  =====================================================================================

A permit is released exactly once, at the end of its ``async with`` block, however that ends. Waiters are resumed in a
loop, ``BURST`` in one turn of the reactor: each may release its permit before it returns, and so neither the call stack
nor the turn grows with their number.
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


class QueueFull(Exception):  # noqa: N818 - named for what happened
    """The queue of waiters is full."""


class FairSemaphore:
    """
    ``count`` permits, and at most ``most_waiting`` waiters.

    ``async with semaphore.hold(path)`` waits for a permit and holds it for the block.
    """

    def __init__(self, count: int, reactor: IReactorTime, *, most_waiting: int | None = None) -> None:
        self._free = count
        self._reactor = reactor
        self._most_waiting = most_waiting
        self._queue = _Branch()
        self._resuming = False

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return self._queue.size

    def hold(self, path: Path = ()) -> Permit:
        """A block that holds a permit. No path may be the beginning of another one."""
        return Permit(self, path)

    def acquire_now(self) -> bool:
        """Take a permit if that needs no waiting; the caller releases it once. False: there is none."""
        if not self._free or self._queue.size:
            return False
        self._free -= 1
        return True

    async def acquire(self, path: Path = ()) -> None:
        """
        Wait for a permit; the caller releases it once.

        :raises QueueFull: the queue is full, and this waiter's branch is the longest
        """
        if self.acquire_now():
            return
        waiter: Deferred[None] = Deferred(partial(self._queue.remove, path))
        self._queue.add(path, waiter)
        if self._most_waiting is not None and self._queue.size > self._most_waiting:
            self._queue.pop_newest_of_longest().errback(QueueFull())
        await waiter

    def release(self) -> None:
        """Return a permit."""
        self._free += 1
        if not self._resuming:
            self._resume_waiters()

    def _resume_waiters(self) -> None:
        self._resuming = True
        for _ in range(BURST):
            if not self._free or not self._queue.size:
                self._resuming = False
                return
            self._free -= 1
            self._queue.pop_next().callback(None)
        self._reactor.callLater(0, self._resume_waiters)


class Permit:
    """A permit that is held within an ``async with`` block."""

    def __init__(self, semaphore: FairSemaphore, path: Path) -> None:
        self._semaphore = semaphore
        self._path = path

    async def __aenter__(self) -> None:
        await self._semaphore.acquire(self._path)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._semaphore.release()


class _Branch:
    """Waiters of one path, and the branches below it in the order in which they are served."""

    def __init__(self) -> None:
        self.size = 0
        self._waiters: deque[Deferred[None]] = deque()
        self._branches: dict[Hashable, _Branch] = {}
        self._last: Hashable = None  # the branch that was served last

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

    def pop_next(self) -> Deferred[None]:
        """The waiter to be served next; its branch goes to the end of the order."""
        self.size -= 1
        if self._waiters:
            return self._waiters.popleft()
        key = self._last = next(iter(self._branches))
        branch = self._branches.pop(key)
        waiter = branch.pop_next()
        if branch.size:
            self._branches[key] = branch
        return waiter

    def _open(self, key: Hashable) -> None:
        if len(self._branches) == 1 and self._last in self._branches:
            self._branches = {key: _Branch(), **self._branches}  # the only other one has just been served
        else:
            self._branches[key] = _Branch()

    def pop_newest_of_longest(self) -> Deferred[None]:
        """The newest waiter of the longest branch of the longest branch, and so on."""
        self.size -= 1
        if self._waiters:
            return self._waiters.pop()
        key = max(reversed(self._branches), key=lambda each: self._branches[each].size)
        branch = self._branches[key]
        waiter = branch.pop_newest_of_longest()
        if not branch.size:
            del self._branches[key]
        return waiter
