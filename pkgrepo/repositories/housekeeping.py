"""What is put away now and then: leftovers of crashes, and repositories that were removed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.purge import purge_due

from .clock import Clock, from_ms
from .registry import Registry
from .stores import Stores
from .sweep import Sweep

log = Logger()

EVERY_S = 3600.0
REMOVED_KEPT = timedelta(days=7)  # a removed repository can be brought back for so long


class Housekeeping(Service):
    """
    Tidies up at the start and every hour; several processes may do so at a time.

    ``alone_since`` is, by storage, when this process found itself alone on it.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        sweep: Sweep,
        alone_since: Mapping[int, datetime],
        clock: Clock,
        reactor: IReactorTime,
    ) -> None:
        self._catalog = catalog
        self._sweep = sweep
        self._alone_since = alone_since
        self._registry = registry
        self._stores = stores
        self._clock = clock
        self._loop = LoopingCall(self._run)
        self._loop.clock = reactor
        self._running: Deferred[None] | None = None

    def startService(self) -> None:
        """Begin."""
        super().startService()  # type: ignore[no-untyped-call]
        self._loop.start(EVERY_S)

    def stopService(self) -> Deferred[None] | None:
        """Break off the round in hand; the next process begins anew."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._loop.stop()
        if self._running is not None:
            self._running.cancel()
        return self._running

    def _run(self) -> Deferred[None]:
        self._running = Deferred.fromCoroutine(self.tidy()).addErrback(_report)
        return self._running

    async def tidy(self) -> None:
        """One round."""
        for storage in self._registry.storages():
            try:
                store = await self._stores.of(storage)
                now, alone_since = from_ms(self._clock.now_ms()), self._alone_since.get(storage.id)
                swept = await self._sweep.run(storage, store, now, alone_since)
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
        kept_ms = int(REMOVED_KEPT.total_seconds() * 1000)
        purged = await purge_due(self._catalog, self._clock.now_ms() - kept_ms)
        if purged:
            log.info("purged {count} removed repositories", count=purged)


def _report(failure: Failure) -> None:
    if not failure.check(CancelledError):
        log.failure("tidying up failed", failure=failure)
