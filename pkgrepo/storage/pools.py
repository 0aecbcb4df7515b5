"""
Bounded threads for work that blocks, one pool to a kind of work.

The reactor's own pool resolves names and is left to that: a slow disk must not stop name resolution, nor a password
hash the disk.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

T = TypeVar("T")
P = ParamSpec("P")

DISK_THREADS = 8  # threads; enough to keep a disk's queue busy, few enough that a stalled disk costs little memory


class Pool:
    """
    At most ``size`` threads, and a queue before them.

    Calling the pool runs a function on one of them. Cancelling the Deferred only drops the result: a thread cannot be
    interrupted, so whoever cancels must not free what the function still uses.

    The threads are daemons: when a start fails half-way nobody stops the pools, and whatever runs on them must stand a
    crash anyway. They are not Twisted's: when eight calls come at once, a hop costs 8 to 19 us of processor time with
    a ``SimpleQueue`` and one wake-up for all results, against 33 us.
    """

    def __init__(self, reactor: IReactorFromThreads, name: str, size: int) -> None:
        self.reactor = reactor
        self.name = name
        self._size = size
        self._threads: list[Thread] = []
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._results: deque[tuple[Deferred[Any], Any]] = deque()
        self._wakeup_pending = False
        self._running = False
        self._busy = 0
        self._idle_waiters: list[Deferred[None]] = []

    def start(self) -> None:
        """Take work from now on."""
        self._running = True

    async def stop(self) -> None:
        """Refuse new work, wait for what was taken, end the threads. A pool is not started twice."""
        if not self._running:
            return
        self._running = False
        await self.wait_idle()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    async def wait_idle(self) -> bool:
        """Wait until nothing of what was taken is under way; whether there was anything."""
        if not self._busy:
            return False
        idle: Deferred[None] = Deferred()
        self._idle_waiters.append(idle)
        await idle
        return True

    def __call__(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """
        The function's result, from a thread of the pool.

        :raises RuntimeError: the pool does not run
        """
        if not self._running:
            return fail(RuntimeError(f"the {self.name} threads do not run"))
        # Two Deferreds, since cancelling the only one would also end the count of what still runs.
        outcome: Deferred[T] = Deferred()
        work: Deferred[T] = Deferred()
        work.addCallbacks(outcome.callback, outcome.errback).addBoth(self._done)

        def run() -> None:
            try:
                result: T | Failure = func(*args, **kwargs)
            except BaseException:  # noqa: BLE001 - handed on to whoever waits for it
                result = Failure()
            self.deliver(work, result)

        self._busy += 1
        self._work.put(run)
        if len(self._threads) < min(self._busy, self._size):
            self._grow()
        return outcome

    def deliver(self, outcome: Deferred[T], result: T | Failure) -> None:
        """
        Fire a Deferred in the reactor's thread, from any thread.

        Those that come together wake the reactor once.
        """
        self._results.append((outcome, result))
        if not self._wakeup_pending:
            self._wakeup_pending = True
            self.reactor.callFromThread(self._fire)

    def _fire(self) -> None:
        # First, so that whoever adds a result after the last look below calls again.
        self._wakeup_pending = False
        while self._results:
            outcome, result = self._results.popleft()
            outcome.callback(result)

    def _grow(self) -> None:
        name = f"pkgrepo-{self.name}-{len(self._threads)}"
        thread = Thread(target=self._serve, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (run := self._work.get()) is not None:
            run()
            del run  # not kept alive until the next: it holds what it was given

    def _done(self, _: object) -> None:
        # After the result was handed on: who waits for all of them finds each where it belongs.
        self._busy -= 1
        if not self._busy:
            waiters, self._idle_waiters = self._idle_waiters, []
            for idle in waiters:
                idle.callback(None)


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

    async def wait_idle(self) -> bool:
        """Wait for every pool to have nothing under way, one after the other; whether any had."""
        return any([await pool.wait_idle() for pool in self._pools])
