"""Runs a garbage collection on each storage once a day."""

from __future__ import annotations

from functools import partial

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.model import Storage
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.jobs import JobRunning

from .gc import KIND, GarbageCollector, GcOptions
from .jobs import Jobs

log = Logger()

EVERY_S = 3600.0
DAY_MS = 24 * 3600 * 1000
OPTIONS = GcOptions(grace_s=24 * 3600)


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
        await self._catalog.write(settings.put, _key(storage), str(self._clock.now_ms()))
        if job.result["freed"]:
            log.info("freed {size} bytes of storage {storage}", size=job.result["freed"], storage=storage.name)


def _key(storage: Storage) -> str:
    return f"daily_gc:{storage.uid}"
