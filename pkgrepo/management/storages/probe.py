"""The route that tests a storage by writing and reading a probe."""

from __future__ import annotations

import os
import time

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import IBlobStore
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table

from .routes import get_storage
from .schema import StorageCheck

PROBE_BYTES = 64 * 1024


class StorageProbe(Handlers):
    """Tests whether a storage can be written and read."""

    table = Table("storages")

    @table.route(
        "POST",
        "/storage/<id>/check",
        access=SYSTEM_MANAGERS,
        summary="Test a storage by writing and reading a probe",
        answer=StorageCheck,
        audit="storage.check",
    )
    async def check(self, call: Call, id: str) -> StorageCheck:
        """64 KiB are written, synced, read back, compared and removed. A failure is in the body of a 200 answer."""
        storage = await get_storage(self._catalog, id)
        call.object = storage.name
        written = read = 0.0
        free = None
        try:
            store: IBlobStore = await self._services.stores.open(storage)
            free, _total = store.capacity() or (None, None)
            probe = os.urandom(PROBE_BYTES)
            started = time.perf_counter()
            async with store.begin(len(probe)) as upload:
                upload.write(probe)
                await upload.drained()
                info = await upload.commit()
            written = time.perf_counter() - started
            started = time.perf_counter()
            back = await store.open(info.locator).read(0, len(probe))
            read = time.perf_counter() - started
            await store.delete(info.locator)
            error = None if back == probe else "the bytes read are not the bytes written"
        except (PkgrepoError, OSError) as failure:
            error = str(failure)
        return StorageCheck(
            ok=error is None,
            error=error,
            bytes=PROBE_BYTES,
            write_ms=round(written * 1000, 2),
            read_ms=round(read * 1000, 2),
            free_bytes=free,
        )
