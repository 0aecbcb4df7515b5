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

from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.integrity import Damage, find_damage
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import BlobReference, blob_references

from .blob_copies import BlobRepair, Spares, no_spares

log = Logger()

USERS: Final = 20  # files, and images, whose copies of a blob are tried
PAGE: Final = 100


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
        """
        Look once more at those that are known to be damaged, and replace them, as far as their bytes are found by now.

        Returns how many are sound again.
        """
        mended, after = 0, b""
        while some := await self._catalog.scan(blobs.list_suspects, storage.id, after, PAGE):
            for info in some:
                try:
                    mended += await self._is_sound_again(storage, info)
                except FAILURES as error:
                    log.warn("blob {sha256} was not replaced: {reason}", sha256=info.sha256, reason=reason_of(error))
            after = bytes.fromhex(some[-1].sha256)
        return mended

    async def _is_sound_again(self, storage: Storage, info: BlobInfo) -> bool:
        store = await self._stores.of(storage)
        if await find_damage(self._pools, store, info.locator, info.sha256) is None:
            await self._catalog.write(blobs.set_verified, storage.id, [info.sha256], self._clock.now_ms())
            return True
        users = await self._catalog.scan(blob_references, storage.id, info.sha256, USERS)
        return await self._repair.replace(storage, store, info, users)


def log_damage(storage: Storage, info: BlobInfo, found: Damaged) -> None:
    """Say in the log what was found, and what was done about it."""
    log.error(
        "storage {storage}: blob {sha256}: {finding}; {done}",
        storage=storage.name,
        sha256=info.sha256,
        finding=found.damage.finding,
        done="it was replaced by another copy of its bytes" if found.mended else "no other copy of its bytes was found",
    )
