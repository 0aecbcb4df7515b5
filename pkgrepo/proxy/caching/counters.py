"""Counts how the caches of proxy repositories are used."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import FLUSH_S
from pkgrepo.storage.catalog.usage_counts import DAY_MS, CacheCounts, Place, add_cache_counts

NOTHING = CacheCounts()


class CacheCounters(PeriodicTask):
    """
    Collects counts in memory and adds them to the catalog at times.

    Kept files that are sent are downloads, which are counted when these are written: see L{record_downloads}.
    """

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        failed = "the use of caches was not recorded"
        super().__init__(self.flush, reactor, every_s=FLUSH_S, what="use of caches", failed=failed, last=self.flush)
        self._catalog = catalog
        self._clock = clock
        self._pending: dict[Place, CacheCounts] = {}

    def add(self, repository_id: int, counts: CacheCounts) -> None:
        """Add to the counts of a repository."""
        place = repository_id, self._clock.now_ms() // DAY_MS
        self._pending[place] = self._pending.get(place, NOTHING) + counts

    def add_traffic(self, repository_id: int, size: int, seconds: float) -> None:
        """Add what an upstream of a repository sent: bytes, and the time that it took."""
        self.add(repository_id, CacheCounts(fetched_bytes=size, upstream_ms=round(seconds * 1000)))

    async def flush(self) -> None:
        """Write what was collected; it is kept for the next time while the catalog cannot be written."""
        pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            await self._catalog.write(add_cache_counts, pending)
        except (StorageFull, StorageFailed):  # which the catalog has logged
            for place, counts in pending.items():
                self._pending[place] = self._pending.get(place, NOTHING) + counts
