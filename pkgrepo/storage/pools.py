"""
Bounded threads for work that blocks, one pool to a kind of work.

The reactor's own pool resolves names and is left to that: a slow disk must not stop name resolution, nor a password
hash the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

T = TypeVar("T")
P = ParamSpec("P")

DISK_THREADS = 8  # threads; enough to keep a disk's queue busy, few enough that a stalled disk costs little memory


class _DaemonThread(Thread):
    """
    A thread that does not keep a dying process alive.

    When a start fails half-way nobody stops the pools, and whatever runs on them must stand a crash anyway.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, daemon=True, **kwargs)


class _Threads(ThreadPool):
    threadFactory = _DaemonThread


class Pool:
    """
    At most ``size`` threads, and a queue before them.

    Calling the pool runs a function on one of them. Cancelling the Deferred only drops the result: a thread cannot be
    interrupted, so whoever cancels must not free what the function still uses.
    """

    def __init__(self, reactor: IReactorFromThreads, name: str, size: int) -> None:
        self.reactor = reactor
        self.name = name
        self._threads = _Threads(0, size, f"pkgrepo-{name}")
        self._running = False
        self._busy = 0
        self._resting: list[Deferred[None]] = []

    def start(self) -> None:
        """Take work from now on."""
        self._threads.start()
        self._running = True

    async def stop(self) -> None:
        """Refuse new work, wait for what was taken, end the threads. A pool is not started twice."""
        if not self._running:
            return
        self._running = False
        await self.rest()
        self._threads.stop()

    async def rest(self) -> bool:
        """Wait until nothing of what was taken is under way; whether there was anything."""
        if not self._busy:
            return False
        idle: Deferred[None] = Deferred()
        self._resting.append(idle)
        await idle
        return True

    def __call__(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """
        The function's result, from a thread of the pool.

        :raises RuntimeError: the pool does not run
        """
        if not self._running:
            return fail(RuntimeError(f"the {self.name} threads do not run"))
        self._busy += 1
        # Two Deferreds, since cancelling the only one would also end the count of what still runs.
        outcome: Deferred[T] = Deferred()
        work: Deferred[T] = deferToThreadPool(self.reactor, self._threads, func, *args, **kwargs)
        work.addBoth(self._done).addCallbacks(outcome.callback, outcome.errback)
        return outcome

    def _done(self, result: Any) -> Any:
        self._busy -= 1
        if not self._busy:
            resting, self._resting = self._resting, []
            for idle in resting:
                idle.callback(None)
        return result


class Pools:
    """The pools of one process: ``disk`` for files, ``cpu`` for computing, and those that others ``add``."""

    def __init__(
        self, reactor: IReactorFromThreads, *, disk_threads: int = DISK_THREADS, cpu_threads: int | None = None
    ) -> None:
        self.reactor = reactor
        self._pools: list[Pool] = []
        self._running = False
        self.disk = self.add("disk", disk_threads)
        self.cpu = self.add("cpu", cpu_threads or os.cpu_count() or 1)

    def add(self, name: str, size: int) -> Pool:
        """A further pool, started and stopped with the others."""
        pool = Pool(self.reactor, name, size)
        self._pools.append(pool)
        if self._running:
            pool.start()
        return pool

    def start(self) -> None:
        """Start every pool."""
        self._running = True
        for pool in self._pools:
            pool.start()

    async def stop(self) -> None:
        """Stop every pool, the latest added first; their work in progress is waited for."""
        self._running = False
        for pool in reversed(self._pools):
            await pool.stop()

    async def rest(self) -> bool:
        """Wait for every pool to have nothing under way, one after the other; whether any had."""
        return any([await pool.rest() for pool in self._pools])
