"""The blob stores of the storages, each opened when it is first needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Conflict, StorageFailed
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Storage

log = Logger()

Opener = Callable[[Storage], Awaitable[IBlobStore]]


class Stores:
    """The open blob stores; ``opener`` opens and checks the store of a storage."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._open: dict[int, IBlobStore] = {}
        self._flight: SingleFlight[int, IBlobStore] = SingleFlight()

    async def open(self, storage: Storage) -> IBlobStore:
        """
        Return the store of a storage, opened by the first call; its errors have details for the operator.

        :raises Conflict: it is missing, or belongs to another storage; :raises StorageFailed: it cannot be opened
        """
        found = self._open.get(storage.id)
        if found is None:
            found = await self._flight.run(storage.id, lambda: self._opener(storage))
            self._open[storage.id] = found
        return found

    async def of(self, storage: Storage) -> IBlobStore:
        """
        Return the store of a storage, for requests: a Conflict is only logged.

        :raises StorageFailed: it cannot be opened
        """
        found = self._open.get(storage.id)
        if found is not None:
            return found
        try:
            return await self.open(storage)
        except Conflict as error:
            reason = error
        log.error("{reason}", reason=str(reason))
        raise StorageFailed(storage.name) from reason

    def opened(self, storage_id: int) -> IBlobStore | None:
        """Return the store if it is open, else None."""
        return self._open.get(storage_id)

    def forget(self, storage_id: int) -> None:
        """Remove the store of a storage that was removed or moved."""
        self._open.pop(storage_id, None)
