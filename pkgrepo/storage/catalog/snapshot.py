"""A value read from the catalog and kept in memory until the catalog's generation moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader

T = TypeVar("T")


class Snapshot(Generic[T]):
    """
    What ``read`` gives, as of the last refresh.

    ``read`` is a query that gets the value before it, which it may give back when nothing of it has changed. ``value``
    is ``initial`` until the first refresh. When several ask for a refresh after one commit, the catalog is asked once.
    """

    def __init__(self, catalog: ICatalog, read: Callable[[Reader, T], T], initial: T) -> None:
        self.value = initial
        self._catalog = catalog
        self._read = read
        self._generation: int | None = None
        self._begun = 0  # refreshes, in the order in which they asked
        self._newest = 0  # the number of the refresh that the value is of
        self._flight: SingleFlight[int, None] = SingleFlight()

    def refresh_now(self) -> bool:
        """
        Whether the value is of the current generation.

        It is read again if the catalog can do that at once; else ``refresh`` has to be awaited.
        """
        generation = self._catalog.generation()
        if generation == self._generation:
            return True
        found = self._catalog.peek(self._read, self.value)
        if found is NOT_NOW:
            return False
        self._begun += 1
        self._take(self._begun, generation, found)
        return True

    async def refresh(self) -> None:
        """
        Make the value one that was current at some time after this was called.

        The generation may have moved on since then, so that ``refresh_now`` may be false again right afterwards.
        """
        if not self.refresh_now():
            generation = self._catalog.generation()
            await self._flight.run(generation, lambda: self._refresh(generation))

    async def _refresh(self, generation: int) -> None:
        self._begun += 1
        number = self._begun
        self._take(number, generation, await self._catalog.look(self._read, self.value))

    def _take(self, number: int, generation: int, value: T) -> None:
        # Replies may overtake each other: an older one must not replace a newer one.
        if number > self._newest:
            self.value, self._generation, self._newest = value, generation, number
