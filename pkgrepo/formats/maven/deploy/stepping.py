"""Long work in short pieces, on the threads of a pool or in the reactor's, so that other work gets its turn."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Generator
from threading import Lock
from typing import Final, Generic, TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.task import deferLater
from twisted.logger import Logger

from pkgrepo.storage.pools import Pool

log = Logger()

T = TypeVar("T")

STEP_S: Final = 0.02  # seconds of a thread per call; a hop costs 0.02 ms
TURN_S: Final = 0.003  # seconds of the reactor's thread in one turn
STEP_SIZE: Final = 1024 * 1024  # bytes that one call collects


class Steps(Generic[T]):
    """
    The items of a generator that blocks, in batches.

    Use it as a context manager: at its end the generator is closed, on a thread, once no call runs any more. An item
    that is bytes counts by its length.
    """

    def __init__(self, pool: Pool, items: Generator[T, None, None]) -> None:
        self._pool = pool
        self._items = items
        self._lock = Lock()

    async def __aenter__(self) -> AsyncIterator[list[T]]:
        return self._batches()

    async def __aexit__(self, *_: object) -> None:
        # Not awaited: after a cancellation a call may still run, and the generator ends behind it.
        self._pool(self._close).addErrback(lambda failure: log.failure("a file was not closed", failure=failure))

    async def _batches(self) -> AsyncIterator[list[T]]:
        while batch := await self._pool(self._take):
            yield batch

    def _take(self) -> list[T]:
        batch: list[T] = []
        size = 0
        until = time.monotonic() + STEP_S
        with self._lock:
            for item in self._items:
                batch.append(item)
                size += len(item) if isinstance(item, bytes) else 0
                if size >= STEP_SIZE or time.monotonic() > until:
                    break
        return batch

    def _close(self) -> None:
        with self._lock:
            self._items.close()


class Turns:
    """Work of the reactor's thread that calls ``rest`` now and then: after ``TURN_S`` others have their turn."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def rest(self) -> None:
        """Let others have the reactor if this work has had it for long enough."""
        if time.monotonic() - self._began >= TURN_S:
            await deferLater(_reactor, 0)
            self._began = time.monotonic()
