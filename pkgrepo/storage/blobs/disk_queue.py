"""A FIFO queue of calls on the disk threads, one for each upload."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from pkgrepo.storage.pools import Pool

T = TypeVar("T")
P = ParamSpec("P")

TURN = 4  # calls a thread makes before it serves other queues: at 512 KiB each about 2 ms of a fast disk


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
