"""The blob store of each storage, opened when it is first needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pkgrepo.concurrency.flight import SingleFlight
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Storage

Opener = Callable[[Storage], Awaitable[IBlobStore]]


class Stores:
    """Hands out blob stores; ``opener`` makes and checks one for a storage record."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._open: dict[int, IBlobStore] = {}
        self._flight: SingleFlight[int, IBlobStore] = SingleFlight()

    async def of(self, storage: Storage) -> IBlobStore:
        """
        The store behind a storage, opened at the first call.

        :raises StorageFailed: it cannot be opened
        """
        found = self._open.get(storage.id)
        if found is None:
            found = await self._flight.run(storage.id, lambda: self._opener(storage))
            self._open[storage.id] = found
        return found

    async def check(self, storage: Storage) -> None:
        """
        Open a storage as it is about to be, beside what it is now.

        :raises StorageFailed: it cannot be opened
        """
        await self._opener(storage)

    def opened(self, storage_id: int) -> IBlobStore | None:
        """The store if it has been opened before, without waiting."""
        return self._open.get(storage_id)

    def forget(self, storage_id: int) -> None:
        """Let go of a storage that was removed, or is elsewhere now."""
        self._open.pop(storage_id, None)
