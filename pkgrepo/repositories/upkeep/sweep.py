"""
Removing what dead processes left behind.

======================  ==============================================  ==========================================
leftover                left by a crash                                 told by
======================  ==============================================  ==========================================
unfinished upload       while bytes came in, where files have names     its age; no row of the catalog names it
copy without a name     between the bytes' commit and the catalog's     its age; no row names it, nothing shows it
layout's temporary      while a file got its readable name              its age
======================  ==============================================  ==========================================

A process that was alone on a storage when it came takes everything older than that. Otherwise, and later on, only what
is older than any upload is believed to take. Copies that a ``reindex`` found and could not assign stay for
``UNCLAIMED_KEPT`` after it: they may be what a lost database knew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from attrs import define

from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.layout_folder import layout_folder_of

UPLOAD_GRACE = timedelta(hours=1)  # without a byte; a slower client has been cut off long before
COPY_GRACE = timedelta(days=1)  # a copy of that age has either been published or given up
UNCLAIMED_KEPT = timedelta(days=30)  # time to find a copy of the database
PAGE = 500


@define
class Swept:
    """How much of each kind went."""

    uploads: int = 0
    copies: int = 0
    temporaries: int = 0

    def __bool__(self) -> bool:
        return bool(self.uploads or self.copies or self.temporaries)


class Sweep:
    """What is left over on storages, and its removal."""

    def __init__(self, context: MaintenanceContext) -> None:
        self._catalog = context.catalog
        self._pools = context.pools

    async def run(self, storage: Storage, store: IBlobStore, now: datetime, exclusive_since: datetime | None) -> Swept:
        """
        Remove the leftovers of a storage; what went.

        All of those from before ``exclusive_since``, if this process was alone on the storage then.

        :raises StorageFailed: the storage does not let itself be looked through
        """
        swept = Swept()
        uploads_before, copies_before = now - UPLOAD_GRACE, now - COPY_GRACE
        if exclusive_since is not None:
            uploads_before, copies_before = max(uploads_before, exclusive_since), max(copies_before, exclusive_since)
        keep = await self._catalog.scan(blobs.claimed_uploads, storage.id)
        swept.uploads = await store.sweep_uploads(uploads_before, keep)
        layout = layout_folder_of(store)
        if layout is not None:
            swept.temporaries = await self._pools.disk(layout.sweep, uploads_before.timestamp())
        async for locator in self.forgotten(storage, store, copies_before, now):
            await store.delete(locator)
            swept.copies += 1
        return swept

    async def forgotten(
        self, storage: Storage, store: IBlobStore, before: datetime, now: datetime
    ) -> AsyncIterator[str]:
        """
        The copies from before a time that no row names, and that no reindex left to be kept until later than ``now``.

        Those that the readable layout shows were published once: when the catalog does not know them, then because it
        was lost or put back to an older state, and they are what ``reindex`` needs.
        """
        layout = layout_folder_of(store)
        unclaimed_before = from_ms(int(await self._catalog.look(settings.get, settings.UNCLAIMED_BEFORE) or 0))
        kept_before = unclaimed_before if now < unclaimed_before + UNCLAIMED_KEPT else from_ms(0)
        after = ""
        while page := await store.scan(after, PAGE):
            old = [locator for locator, _, committed in page if kept_before <= committed < before]
            for locator in await self._catalog.scan(blobs.unnamed, storage.id, old):
                if layout is None or not await self._pools.disk(layout.shows, locator):
                    yield locator
            after = page[-1][0]
