"""Hourly clean-up: leftovers of crashes, removed repositories, old rows of the audit log, stale statistics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError, StorageFailed
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.storage.catalog.documents import superseded_documents
from pkgrepo.storage.catalog.images.promises import remove_expired_promises
from pkgrepo.storage.catalog.packages import about
from pkgrepo.storage.catalog.packages.checksum_claims import remove_expired_claims
from pkgrepo.storage.catalog.packages.deployments import expire_deployments
from pkgrepo.storage.catalog.packages.interrupted_deployments import release_interrupted
from pkgrepo.storage.catalog.server.audit import prune_audit
from pkgrepo.storage.catalog.server.purge import purge_due

from .sweep import Sweep

log = Logger()

EVERY_S = 3600.0
BATCH = 500  # rows removed by one transaction
FILLED = 20  # packages of which one transaction writes what searches read, in 10 ms; other writes take turns
REMOVED_KEPT = timedelta(days=7)  # time in which a removed repository can be restored

# Each removes so many rows that have expired at a time, and returns whether there may be more.
_REMOVALS = (remove_expired_promises, expire_deployments, remove_expired_claims, superseded_documents.remove_expired)


class Housekeeping(PeriodicTask):
    """
    Cleans up at the start and every hour.

    ``exclusive_since`` has, for each storage id, the time at which no other process used the storage. ``audit_kept`` is
    the retention time of rows in the audit log.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        *,
        sweep: Sweep,
        exclusive_since: Mapping[int, datetime],
        audit_kept: timedelta,
        reactor: IReactorTime,
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="tidying up")
        self._catalog = context.catalog
        self._sweep = sweep
        self._exclusive_since = exclusive_since
        self._audit_kept = audit_kept
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
        purged = await purge_due(self._catalog, self._before_ms(REMOVED_KEPT))
        if purged:
            log.info("purged {count} removed repositories", count=purged)
        while await self._catalog.write(prune_audit, self._before_ms(self._audit_kept)):
            pass
        for remove in _REMOVALS:
            while await self._catalog.write(remove, self._clock.now_ms(), BATCH):
                pass

        if await self._catalog.renew_statistics():
            log.info("renewed the statistics of the catalog's query planner")
        await self._fill_about()  # last: after an upgrade it takes a minute for 100,000 packages

    async def _fill_about(self) -> None:
        """Write what searches read of packages that have none of it yet; see L{about}."""
        after = 0
        while found := await self._catalog.scan(about.without_about, after, BATCH):
            for start in range(0, len(found), FILLED):
                await self._catalog.write(about.fill, found[start : start + FILLED])
            after = found[-1]

    def _before_ms(self, kept: timedelta) -> int:
        return self._clock.now_ms() - int(kept.total_seconds() * 1000)
