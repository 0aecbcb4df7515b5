"""What is put away now and then: uploads that nobody finishes, and repositories that were removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog import blobs
from pkgrepo.storage.catalog.purge import purge_due

from .clock import Clock
from .registry import Registry
from .stores import Stores

log = Logger()

EVERY_S = 3600.0
UPLOAD_REST = timedelta(hours=1)  # without a byte; a slower client has been cut off long before
REMOVED_KEPT = timedelta(days=7)  # a removed repository can be brought back for so long


class Housekeeping(Service):
    """Tidies up at the start and every hour; several processes may do so at a time."""

    def __init__(
        self, *, catalog: ICatalog, registry: Registry, stores: Stores, clock: Clock, reactor: IReactorTime
    ) -> None:
        self._catalog = catalog
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
        """Let the round in hand end."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._loop.stop()
        return self._running

    def _run(self) -> Deferred[None]:
        self._running = Deferred.fromCoroutine(self.tidy()).addErrback(
            lambda failure: log.failure("tidying up failed", failure=failure)
        )
        return self._running

    async def tidy(self) -> None:
        """One round."""
        for storage in self._registry.storages():
            try:
                store = await self._stores.of(storage)
                kept = await self._catalog.scan(blobs.claimed_uploads, storage.id)
                swept = await store.sweep_uploads(datetime.now(UTC) - UPLOAD_REST, kept)
            except PkgrepoError:
                log.failure("storage {storage} could not be tidied up", storage=storage.name)
                continue
            if swept:
                log.info("removed {count} unfinished uploads from {storage}", count=swept, storage=storage.name)
        kept_ms = int(REMOVED_KEPT.total_seconds() * 1000)
        purged = await purge_due(self._catalog, self._clock.now_ms() - kept_ms)
        if purged:
            log.info("purged {count} removed repositories", count=purged)
