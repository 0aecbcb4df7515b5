"""One upload's work on the disk threads, in the order given."""

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

TURN = 8  # calls a thread makes before others' uploads get it: at 256 KiB each about 2 ms of a fast disk


class DiskQueue:
    """
    Calls made one after the other, by at most one thread of the pool at a time.

    What follows in the queue may therefore use, close or remove what came before used. A thread stays while there is
    work, so that a busy upload does not pay a hop for every slice. A call that fails does not stop those behind it.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: deque[tuple[Deferred[Any], Callable[[], Any]]] = deque()
        self._running = False

    def run(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """The function's result, after everything given before; cancelling drops the result, not the call."""
        outcome: Deferred[T] = Deferred()
        self._calls.append((outcome, partial(func, *args, **kwargs)))
        if not self._running:
            self._running = True
            self._next_turn()
        return outcome

    def _next_turn(self) -> None:
        self._pool(self._turn).addCallbacks(self._turned, self._refused)

    def _turn(self) -> None:
        """Runs in a pool's thread; the deque's ends are safe to use from two threads."""
        for _ in range(TURN):
            try:
                outcome, call = self._calls.popleft()
            except IndexError:
                return
            try:
                result = call()
            except BaseException:  # noqa: BLE001 - handed on to whoever waits for it
                result = Failure()
            self._pool.deliver(outcome, result)
            # Not kept alive over the next call: they hold a slice of the body.
            del outcome, call, result

    def _turned(self, _: None) -> None:
        # Whatever was added after the thread saw an empty queue is still there.
        if self._calls:
            self._next_turn()
        else:
            self._running = False

    def _refused(self, failure: Failure) -> None:
        self._running = False
        while self._calls:
            self._calls.popleft()[0].errback(failure)
