"""A value read from the catalog and kept in memory until the catalog's generation changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader

T = TypeVar("T")


class Snapshot(Generic[T]):
    """
    The result of the query ``read``, as of the last refresh.

    ``read`` gets the previous value and may return it if nothing has changed. ``value`` is ``initial`` until the first
    refresh. Concurrent refreshes after one commit share one query. ``on_new`` is called when the value is another one.
    """

    def __init__(
        self, catalog: ICatalog, read: Callable[[Reader, T], T], initial: T, on_new: Callable[[], object] = lambda: None
    ) -> None:
        self.value = initial
        self._on_new = on_new
        self._catalog = catalog
        self._read = read
        self._generation: int | None = None
        self._begun = 0  # number of refreshes started
        self._newest = 0  # number of the refresh that gave the value
        self._flight: SingleFlight[int, None] = SingleFlight()

    def refresh_now(self) -> bool:
        """
        Refresh the value without waiting. False if the catalog cannot answer at once: await ``refresh`` then.

        It cannot if it cannot be read, either: who awaits ``refresh`` is told why.
        """
        try:
            generation = self._catalog.generation()
            if generation == self._generation:
                return True
            found = self._catalog.peek(self._read, self.value)
        except StorageFailed:
            return False
        if found is NOT_NOW:
            return False
        self._begun += 1
        self._take(self._begun, generation, found)
        return True

    def latest(self) -> T:
        """Return the value, refreshed first if that is possible without waiting."""
        self.refresh_now()
        return self.value

    async def refresh(self) -> None:
        """
        Refresh the value; the new value was current at some time after this call.

        The generation may change during the refresh, so ``refresh_now`` may return False right after it.
        """
        if not self.refresh_now():
            generation = self._catalog.generation()
            await self._flight.run(generation, lambda: self._refresh(generation))

    async def _refresh(self, generation: int) -> None:
        self._begun += 1
        number = self._begun
        self._take(number, generation, await self._catalog.look(self._read, self.value))

    def _take(self, number: int, generation: int, value: T) -> None:
        # Replies may arrive out of order: an older one must not replace a newer one.
        if number > self._newest:
            is_new = value is not self.value
            self.value, self._generation, self._newest = value, generation, number
            if is_new:
                self._on_new()
