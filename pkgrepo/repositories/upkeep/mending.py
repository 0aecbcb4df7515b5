"""
What is done about stored copies whose bytes have changed, or are gone: nobody is served them, and they are replaced.

The bytes may be elsewhere in the storages (see L{BlobRepair}), or in the last backup. What a proxy has kept is fetched
again from its upstream by the next request for it. The rest is tried again every hour; health counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.integrity import Damage
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import BlobReference, blob_references

from .blob_copies import BlobRepair, Spares, no_spares

log = Logger()

USERS: Final = 20  # files, and images, whose copies of a blob are tried
MOST: Final = 500  # damaged blobs of a storage that are tried at a time


@frozen
class Damaged:
    """A damaged blob that was marked as such: what is wrong, who has it (not all), and whether it was replaced."""

    damage: Damage
    users: Sequence[BlobReference]
    mended: bool


class Mender(MaintenanceWork):
    """Marks damaged blobs, and replaces them; ``spares`` are further places where their bytes may be."""

    def __init__(self, context: MaintenanceContext, spares: Spares = no_spares) -> None:
        super().__init__(context)
        self._repair = BlobRepair(context, spares)

    async def mark(
        self, storage: Storage, store: IBlobStore, info: BlobInfo, damage: Damage, *, replace: bool = True
    ) -> Damaged | None:
        """
        Mark a blob as damaged, so that nobody is served it, and ``replace`` it if its bytes are found elsewhere.

        Returns None if the copy was removed or replaced meanwhile.
        """
        if not await self._catalog.write(blobs.mark_suspect, storage.id, info.sha256, info.locator):
            return None
        users = await self._catalog.scan(blob_references, storage.id, info.sha256, USERS)
        mended = replace and await self._repair.replace(storage, store, info, users)
        return Damaged(damage, users, mended)

    async def told(self, storage_id: int, sha256: str, locator: str, damage: Damage) -> None:
        """Mark and replace what was found to be damaged when it was read, and log it."""
        storage = self._registry.storage(storage_id)
        info = await self._catalog.look(blobs.find_blob, storage_id, sha256)
        if info is None or info.locator != locator:
            return
        found = await self.mark(storage, await self._stores.of(storage), info, damage)
        if found is not None:
            log_damage(storage, info, found)

    async def try_again(self, storage: Storage) -> int:
        """Replace those that are known to be damaged, as far as their bytes are found by now. Returns how many."""
        mended = 0
        for info in await self._catalog.scan(blobs.list_suspects, storage.id, MOST):
            store = await self._stores.of(storage)
            users = await self._catalog.scan(blob_references, storage.id, info.sha256, USERS)
            try:
                mended += await self._repair.replace(storage, store, info, users)
            except PkgrepoError as error:
                log.warn("blob {sha256} was not replaced: {reason}", sha256=info.sha256, reason=str(error))
        return mended


def log_damage(storage: Storage, info: BlobInfo, found: Damaged) -> None:
    """Say in the log what was found, and what was done about it."""
    log.error(
        "storage {storage}: blob {sha256}: {finding}; {done}",
        storage=storage.name,
        sha256=info.sha256,
        finding=found.damage.finding,
        done="it was replaced by another copy of its bytes" if found.mended else "no other copy of its bytes was found",
    )
