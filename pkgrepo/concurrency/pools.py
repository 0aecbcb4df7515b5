"""
Bounded thread pools for work that blocks, one for each kind of work; queues of calls on them, and the GIL.

The reactor's own pool is left to name resolution: a slow disk must not delay name resolution, and password hashing must
not delay the disk.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

T = TypeVar("T")
P = ParamSpec("P")

DISK_THREADS = 8  # enough to keep a disk's queue busy, few enough that a stalled disk costs little memory


TURN = 4  # calls a thread makes before it serves other queues: at 512 KiB each about 2 ms of a fast disk


class Pool:
    """
    A queue of calls, and at most ``size`` threads that run them.

    Calling the pool runs a function on one of the threads. Cancelling the Deferred only drops the result: a thread
    cannot be interrupted, so the canceller must not free what the function still uses.

    The threads are daemons, because a start that fails half-way does not stop the pools; all work must survive a crash
    anyway. Twisted's pool is not used: with eight calls at once a hop costs 8 to 19 us of processor time with a
    ``SimpleQueue`` and one reactor wake-up for all results, against 33 us.
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
        """Accept calls from now on."""
        self._running = True

    async def stop(self) -> None:
        """Refuse new calls, wait for the accepted ones, and end the threads. A pool cannot be started again."""
        if not self._running:
            return
        self._running = False
        await self.wait_idle()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    async def wait_idle(self) -> bool:
        """Wait until all accepted calls are done. Returns whether there were any."""
        if not self._busy:
            return False
        idle: Deferred[None] = Deferred()
        self._idle_waiters.append(idle)
        await idle
        return True

    def __call__(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """
        Run the function on a thread of the pool, and return its result.

        :raises RuntimeError: the pool is not running
        """
        if not self._running:
            return fail(RuntimeError(f"the {self.name} threads do not run"))
        # Two Deferreds: cancelling the caller's must not change the count of running calls.
        outcome: Deferred[T] = Deferred()
        work: Deferred[T] = Deferred()
        work.addCallbacks(outcome.callback, outcome.errback).addBoth(self._done)

        def run() -> None:
            try:
                result: T | Failure = func(*args, **kwargs)
            except BaseException:  # noqa: BLE001 - passed on to the caller
                result = Failure()
            self.deliver(work, result)

        self._busy += 1
        self._work.put(run)
        if len(self._threads) < min(self._busy, self._size):
            self._grow()
        return outcome

    def deliver(self, outcome: Deferred[T], result: T | Failure) -> None:
        """
        Fire a Deferred in the reactor's thread; may be called from any thread.

        Results that arrive together wake the reactor once.
        """
        self._results.append((outcome, result))
        if not self._wakeup_pending:
            self._wakeup_pending = True
            self.reactor.callFromThread(self._fire)

    def _fire(self) -> None:
        # First: a thread that adds a result after the loop has ended must wake the reactor again.
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
            del run  # it holds the arguments, which must not stay alive until the next call

    def _done(self, _: object) -> None:
        # After the result was delivered: waiters for idleness see its effects.
        self._busy -= 1
        if not self._busy:
            waiters, self._idle_waiters = self._idle_waiters, []
            for idle in waiters:
                idle.callback(None)


class Pools:
    """
    The pools of one process: ``disk`` for files, ``cpu`` for computing, and those that were added.

    ``inside`` is for reading whole archives, which takes seconds, where it keeps nobody else waiting.
    """

    def __init__(
        self, reactor: IReactorFromThreads, *, disk_threads: int = DISK_THREADS, cpu_threads: int | None = None
    ) -> None:
        self.reactor = reactor
        self._pools: list[Pool] = []
        self._running = False
        self.disk = self.add("disk", disk_threads)
        self.cpu = self.add("cpu", cpu_threads or os.cpu_count() or 1)
        self.inside = self.add("inside", 1)

    def add(self, name: str, size: int) -> Pool:
        """Add a pool, which is started and stopped with the others."""
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
        """Stop every pool, the latest added first, and wait for the calls that run."""
        self._running = False
        for pool in reversed(self._pools):
            await pool.stop()

    async def wait_idle(self) -> bool:
        """Wait until each pool is idle, one after the other. Returns whether any had calls."""
        return any([await pool.wait_idle() for pool in self._pools])


class DiskQueue:
    """
    Runs calls one after the other, on at most one thread of the pool at a time.

    A call may therefore close or remove a file that earlier calls used. A thread runs several calls in a row, so that
    a busy upload does not pay a hop for every slice. A call that fails does not stop the following ones.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: deque[tuple[Deferred[Any], Callable[[], Any]]] = deque()
        self._running = False

    def run(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a function after all earlier calls, and return its result. Cancelling drops the result, not the call."""
        outcome: Deferred[T] = Deferred()
        self._calls.append((outcome, partial(func, *args, **kwargs)))
        if not self._running:
            self._running = True
            self._next_turn()
        return outcome

    def _next_turn(self) -> None:
        self._pool(self._turn).addCallbacks(self._turned, self._refused)

    def _turn(self) -> None:
        """Runs in a thread of the pool; both ends of a deque may be used by two threads."""
        for _ in range(TURN):
            try:
                outcome, call = self._calls.popleft()
            except IndexError:
                return
            try:
                result = call()
            except BaseException:  # noqa: BLE001 - passed on to the caller
                result = Failure()
            self._pool.deliver(outcome, result)
            # They hold a slice of the body, which must not stay alive during the next call.
            del outcome, call, result

    def _turned(self, _: None) -> None:
        # A call may have been added after the thread found the queue empty.
        if self._calls:
            self._next_turn()
        else:
            self._running = False

    def _refused(self, failure: Failure) -> None:
        self._running = False
        while self._calls:
            self._calls.popleft()[0].errback(failure)
