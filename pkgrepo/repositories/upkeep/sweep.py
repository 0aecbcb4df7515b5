"""
Removes the files that crashed processes left behind.

======================  ==============================================  ==========================================
leftover                left by a crash                                 recognised by
======================  ==============================================  ==========================================
unfinished upload       while bytes were received into a named file     its age; no row of the catalog names it
unreferenced copy       between the commits of the bytes and the row    its age; no row names it, no layout link
temporary of a layout   while a file of the layout was written          its age
======================  ==============================================  ==========================================

A process that used a storage exclusively when it started removes all older leftovers. Otherwise a grace period applies
that is longer than an upload can take. Copies that a ``reindex`` could not assign are kept for ``UNCLAIMED_KEPT`` after
it, because they may belong to the lost database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from attrs import define

from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceWork
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.layout_folder import layout_folder_of

UPLOAD_GRACE = timedelta(hours=1)  # since the last byte; slower clients are disconnected long before
COPY_GRACE = timedelta(days=1)  # a copy of that age has been published or abandoned
UNCLAIMED_KEPT = timedelta(days=30)  # time to find a backup of the database
PAGE = 500


@define
class Swept:
    """The numbers of removed leftovers."""

    uploads: int = 0
    copies: int = 0
    temporaries: int = 0

    def __bool__(self) -> bool:
        return bool(self.uploads or self.copies or self.temporaries)


class Sweep(MaintenanceWork):
    """Finds and removes leftovers on storages."""

    async def run(self, storage: Storage, store: IBlobStore, now: datetime, exclusive_since: datetime | None) -> Swept:
        """
        Remove the leftovers of a storage.

        Leftovers from before ``exclusive_since``, when no other process used the storage, have no grace period.

        :raises StorageFailed: the storage cannot be listed
        """
        swept = Swept()
        uploads_before, copies_before = now - UPLOAD_GRACE, now - COPY_GRACE
        if exclusive_since is not None:
            uploads_before, copies_before = max(uploads_before, exclusive_since), max(copies_before, exclusive_since)
        keep = await self._catalog.scan(blobs.upload_ids, storage.id)
        swept.uploads = await store.sweep_uploads(uploads_before, keep)
        layout = layout_folder_of(store)
        if layout is not None:
            swept.temporaries = await self._pools.disk(layout.sweep, uploads_before.timestamp())
        async for locator in self.unreferenced_copies(storage, store, copies_before, now):
            await store.delete(locator)
            swept.copies += 1
        return swept

    async def unreferenced_copies(
        self, storage: Storage, store: IBlobStore, before: datetime, now: datetime
    ) -> AsyncIterator[str]:
        """
        Iterate over the copies from before a time that no row names, without those that a reindex still keeps.

        Copies with a link in the readable layout are left out: they were published, and if the catalog does not know
        them, it was lost or restored from a backup, and ``reindex`` needs them.
        """
        layout = layout_folder_of(store)
        unclaimed_before = from_ms(int(await self._catalog.look(settings.get, settings.UNCLAIMED_BEFORE) or 0))
        kept_before = unclaimed_before if now < unclaimed_before + UNCLAIMED_KEPT else from_ms(0)
        after = ""
        while page := await store.scan(after, PAGE):
            old = [locator for locator, _, committed in page if kept_before <= committed < before]
            for locator in await self._catalog.scan(blobs.unknown_locators, storage.id, old):
                if layout is None or not await self._pools.disk(layout.shows, locator):
                    yield locator
            after = page[-1][0]
