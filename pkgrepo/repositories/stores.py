"""The blob store of each storage, opened when it is first needed."""

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
    """Hands out blob stores; ``opener`` makes and checks one for a storage record."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._open: dict[int, IBlobStore] = {}
        self._flight: SingleFlight[int, IBlobStore] = SingleFlight()

    async def open(self, storage: Storage) -> IBlobStore:
        """
        The store behind a storage, opened at the first call, for the operator.

        :raises Conflict: it is missing, or another's; :raises StorageFailed: it cannot be opened
        """
        found = self._open.get(storage.id)
        if found is None:
            found = await self._flight.run(storage.id, lambda: self._opener(storage))
            self._open[storage.id] = found
        return found

    async def of(self, storage: Storage) -> IBlobStore:
        """
        The same for a request, which is not told why it fails.

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
        """The store if it has been opened before, without waiting."""
        return self._open.get(storage_id)

    def forget(self, storage_id: int) -> None:
        """Let go of a storage that was removed, or is elsewhere now."""
        self._open.pop(storage_id, None)
