"""
Periodic clean-up.

Hourly: leftovers of crashes, what was in the trash for long enough (removed repositories, too), old rows of the audit
and the download log, stale statistics, and what storages hold. Daily: a garbage collection on each storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError, StorageFailed
from pkgrepo.model import Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.upkeep.gc import KIND, GarbageCollector, GcOptions
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.repositories.upkeep.sweep import Sweep
from pkgrepo.storage.catalog import download_log, index_documents
from pkgrepo.storage.catalog.blobs.blobs import usage
from pkgrepo.storage.catalog.file_facts import remove_oldest_facts
from pkgrepo.storage.catalog.images.linked_blobs import remove_expired_leases
from pkgrepo.storage.catalog.packages import text_index
from pkgrepo.storage.catalog.packages.checksum_claims import remove_expired_claims
from pkgrepo.storage.catalog.packages.deployments import expire_deployments, release_interrupted
from pkgrepo.storage.catalog.people.tokens import announce_expiring
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.audit import prune_audit
from pkgrepo.storage.catalog.server.jobs import JobRunning
from pkgrepo.storage.catalog.server.purge import purge_due
from pkgrepo.storage.catalog.server.stages import expire_stages
from pkgrepo.storage.catalog.server.trash import kept_days, purge_expired
from pkgrepo.storage.catalog.server.webhook_deliveries import prune_deliveries
from pkgrepo.storage.catalog.usage_counts import note_size

log = Logger()
EVERY_S = 3600.0
BATCH = 500  # rows removed by one transaction
FILLED = 20  # packages of which one transaction writes what searches read, in 10 ms; other writes take turns
# Each removes so many rows that have expired at a time, and returns whether there may be more.
_REMOVALS = (
    remove_expired_leases,
    expire_deployments,
    remove_expired_claims,
    index_documents.remove_expired_superseded,
    purge_expired,
    expire_stages,
    prune_deliveries,
    remove_oldest_facts,
)
DAY_MS = 24 * 3600 * 1000
OPTIONS = GcOptions(grace_s=24 * 3600)


class Housekeeping(PeriodicTask):
    """
    Cleans up at the start and every hour.

    ``exclusive_since`` has, for each storage id, the time at which no other process used the storage. ``audit_kept``
    and ``downloads_kept`` are the retention times of rows in the audit log and the download log.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        *,
        sweep: Sweep,
        exclusive_since: Mapping[int, datetime],
        audit_kept: timedelta,
        downloads_kept: timedelta,
        reactor: IReactorTime,
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="tidying up")
        self._catalog = context.catalog
        self._sweep = sweep
        self._exclusive_since = exclusive_since
        self._audit_kept = audit_kept
        self._downloads_kept = downloads_kept
        self._registry = context.registry
        self._stores = context.stores
        self._clock = context.clock

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for storage in self._registry.storages():
            alone_ms = int(self._exclusive_since.get(storage.id, from_ms(0)).timestamp() * 1000)
            await self._catalog.write(release_interrupted, storage.id, self._clock.now_ms(), alone_ms)
            try:
                store = await self._stores.of(storage)
                now, exclusive_since = from_ms(self._clock.now_ms()), self._exclusive_since.get(storage.id)
                swept = await self._sweep.run(storage, store, now, exclusive_since)
            except StorageFailed as error:
                log.warn("storage {storage} is tidied up later: {error}", storage=storage.name, error=str(error))
                continue
            except PkgrepoError:
                log.failure("storage {storage} could not be tidied up", storage=storage.name)
                continue
            if swept:
                log.info(
                    "removed {uploads} unfinished uploads, {copies} copies that nothing names and {temporaries} "
                    "temporaries from {storage}",
                    uploads=swept.uploads,
                    copies=swept.copies,
                    temporaries=swept.temporaries,
                    storage=storage.name,
                )
        purged = await purge_due(self._catalog, self._before_ms(timedelta(days=await self._catalog.look(kept_days))))
        if purged:
            log.info("purged {count} removed repositories", count=purged)
        await self._prune_logs()
        for remove in _REMOVALS:
            while await self._catalog.write(remove, self._clock.now_ms(), BATCH):
                pass

        await self._measure()
        await self._catalog.write(announce_expiring, self._clock.now_ms())
        if await self._catalog.renew_statistics():
            log.info("renewed the statistics of the catalog's query planner")
        await self._fill_about()  # last: it takes a minute for 100,000 images

    async def _prune_logs(self) -> None:
        """Remove the old rows of the audit log and the download log."""
        while await self._catalog.write(prune_audit, self._before_ms(self._audit_kept)):
            pass
        before_day = self._before_ms(self._downloads_kept) // DAY_MS + 1
        while await self._catalog.write(download_log.remove_expired_downloads, before_day, BATCH):
            pass

    async def _measure(self) -> None:
        """Note what each storage holds, and how long the download log is."""
        rows = await self._catalog.scan(download_log.count_rows)
        await self._catalog.write(settings.put, download_log.ROWS, str(rows))
        day = self._clock.now_ms() // DAY_MS
        for storage in self._registry.storages():
            blobs, size = await self._catalog.scan(usage, storage.id)
            await self._catalog.write(note_size, storage.id, day, int(blobs), int(size))

    async def _fill_about(self) -> None:
        """Write what searches read of packages that have none of it yet; see L{about}."""
        after = 0
        while found := await self._catalog.scan(text_index.without_about, after, BATCH):
            for some in batches(found, FILLED):
                await self._catalog.write(text_index.fill_abouts, some)
            after = found[-1]

    def _before_ms(self, kept: timedelta) -> int:
        return self._clock.now_ms() - int(kept.total_seconds() * 1000)


class DailyCollection(PeriodicTask):
    """
    Checks every hour which storages had their last daily collection a day ago, and collects there.

    The time of the last collection is in the catalog, so restarts and several processes cause no extra ones. A new
    storage has its first collection after a day.
    """

    def __init__(
        self, context: MaintenanceContext, *, collector: GarbageCollector, jobs: Jobs, reactor: IReactorTime
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="the daily garbage collection")
        self._catalog = context.catalog
        self._registry = context.registry
        self._collector = collector
        self._jobs = jobs
        self._clock = context.clock

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for storage in self._registry.storages():
            if storage.active and await self._is_due(storage):
                await self._collect(storage)

    async def _is_due(self, storage: Storage) -> bool:
        key, now_ms = _key(storage), self._clock.now_ms()
        last = await self._catalog.look(settings.get, key)
        if last is None:
            await self._catalog.write(settings.put, key, str(now_ms))
        return last is not None and now_ms - int(last) >= DAY_MS

    async def _collect(self, storage: Storage) -> None:
        await self._registry.refresh()
        repositories = [each for each in self._registry.all() if each.storage_id == storage.id]
        data = {**OPTIONS.to_json(), "on": f"storage {storage.name!r}"}
        work = partial(self._collector.collect, storage, repositories, OPTIONS)
        try:
            job = await self._jobs.wait(await self._jobs.begin(KIND, storage.uid, data, work))
        except JobRunning:
            return  # it is checked again in an hour
        if job.state != "done":
            reason = "; ".join(job.result.get("errors", ()))
            log.warn("storage {storage} had no daily garbage collection: {reason}", storage=storage.name, reason=reason)
            return
        if job.result["held"]:
            return  # by a backup; it is checked again in an hour
        await self._catalog.write(settings.put, _key(storage), str(self._clock.now_ms()))
        if job.result["freed"]:
            log.info("freed {size} bytes of storage {storage}", size=job.result["freed"], storage=storage.name)


def _key(storage: Storage) -> str:
    return f"daily_gc:{storage.uid}"
