"""The collaborators of code that works on whole storages and repositories, and the failures that it survives."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Storage
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.layout_folder import LayoutFolder, layout_folder_of

from .format import StoredFormat

FAILURES = (OSError, PkgrepoError)  # of the disk; of blobs that are missing and storages that cannot be opened


@frozen
class MaintenanceContext:
    """Shared by the readable layout and the maintenance work; ``formats`` are by name."""

    catalog: ICatalog
    registry: Registry
    stores: Stores
    pools: Pools
    clock: Clock
    formats: Mapping[str, StoredFormat]

    async def open_layout(self, storage: Storage) -> LayoutFolder | None:
        """
        Return the readable layout of a storage, or None where its store has no files.

        :raises StorageFailed: the storage cannot be opened
        """
        return layout_folder_of(await self.stores.of(storage))


class MaintenanceWork:
    """The base of classes that work on whole storages and repositories."""

    def __init__(self, context: MaintenanceContext) -> None:
        self._context = context
        self._catalog = context.catalog
        self._registry = context.registry
        self._stores = context.stores
        self._pools = context.pools
        self._clock = context.clock


def reason_of(error: BaseException) -> str:
    """Return why something failed, without a path."""
    return error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)
