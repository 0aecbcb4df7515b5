"""
The blob stores of the storages, each opened when it is first needed, and again when its storage has another folder.

Another process may move a storage, so an open store counts for the settings with which it was opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Conflict, StorageFailed
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Storage

log = Logger()

Opener = Callable[[Storage], Awaitable[IBlobStore]]


@frozen
class _Opened:
    store: IBlobStore
    place: object  # the path in the settings and where it was before, or all settings of a bucket


class Stores:
    """The open blob stores; ``opener`` opens and checks the store of a storage."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._open: dict[int, _Opened] = {}
        self._flight: SingleFlight[int, IBlobStore] = SingleFlight()

    async def open(self, storage: Storage) -> IBlobStore:
        """
        Return the store of a storage, opened by the first call; its errors have details for the operator.

        :raises Conflict: it is missing, or belongs to another storage; :raises StorageFailed: it cannot be opened
        """
        found = self._find(storage)
        if found is None:
            found = await self._opened_now(storage)
            self._open[storage.id] = _Opened(found, _place(storage))
        return found

    async def of(self, storage: Storage) -> IBlobStore:
        """
        Return the store of a storage, for requests: a Conflict is only logged.

        :raises StorageFailed: it cannot be opened
        """
        found = self._find(storage)
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
        found = self._open.get(storage_id)
        return None if found is None else found.store

    def forget(self, storage_id: int) -> None:
        """Remove the store of a storage that was removed or moved."""
        self._open.pop(storage_id, None)

    async def _opened_now(self, storage: Storage) -> IBlobStore:
        def call() -> Awaitable[IBlobStore]:
            return self._flight.run(storage.id, lambda: self._opener(storage))

        began_before = storage.id in self._flight
        try:
            return await call()
        except (Conflict, StorageFailed):
            if not began_before:
                raise
        # What another caller met may be over since: the folder was mounted before this caller asked.
        return await call()

    def _find(self, storage: Storage) -> IBlobStore | None:
        found = self._open.get(storage.id)
        return found.store if found is not None and found.place == _place(storage) else None


def _place(storage: Storage) -> object:
    settings = storage.settings
    return (settings.get("path"), settings.get("before")) if storage.is_local else settings
