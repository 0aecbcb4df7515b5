"""
What is made at its first use, since that imports modules that many servers never need.

Imports of a room take tenths of a second, for which the reactor must not stand still: what a configuration needs is
made at the start, and what a request needs in a thread, while the request waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import RLock
from typing import Final, Generic, Protocol, TypeVar

T = TypeVar("T")

_ONE_AT_A_TIME: Final = RLock()  # one for all: what is made may need what another one makes


class InThread(Protocol):
    """Calls functions in a thread, such as L{pkgrepo.concurrency.pools.Pool}."""

    def __call__(self, func: Callable[[], T], /) -> Awaitable[T]:
        """Fires with the result."""


class Late(Generic[T]):
    """
    A value that ``make`` makes at its first use, once.

    ``make`` is called in any thread, and not in two at a time. If it raises, the next use calls it again.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []  # at most one

    @property
    def is_made(self) -> bool:
        """Whether it is there, so that its use takes no time."""
        return bool(self._made)

    def __call__(self) -> T:
        """Return the value; if this is its first use, make it, which blocks."""
        if not self._made:
            with _ONE_AT_A_TIME:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]

    async def get(self, in_thread: InThread) -> T:
        """Return the value, made in a thread if this is its first use."""
        return self._made[0] if self._made else await in_thread(self)
