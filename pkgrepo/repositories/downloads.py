"""Who fetched what: counted for everybody, and remembered per token for whoever must answer for one."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Identity
from pkgrepo.storage.catalog.packages import downloads

from .clock import Clock

log = Logger()

FLUSH_S = 10.0  # at most this many seconds of downloads are forgotten by a crash
FLUSH_ROWS = 5000
MOST_PENDING = 200_000  # downloads, some 40 MB; as many as there are in minutes while the catalog cannot be written


class Item(Protocol):
    """What counts as downloaded when it was sent whole: a file, as a rule."""

    @property
    def id(self) -> int:
        """Its catalog key."""

    @property
    def repository_id(self) -> int:
        """That of its repository."""

    @property
    def package_id(self) -> int | None:
        """That of its package, if it has one."""

    @property
    def path(self) -> str:
        """Where it is, below its repository."""


@frozen
class ImagePull:
    """The manifest of an image: to get it is to pull the image, whatever layers the client has already."""

    id: int
    repository_id: int
    package_id: int
    path: str


class DownloadRecorder(Service):
    """Gathers downloads in memory and writes them in batches."""

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        self._catalog = catalog
        self._clock = clock
        self._pending: list[downloads.Download] = []
        self._writing = FairSemaphore(1, reactor)
        self._loop = LoopingCall(self.flush)
        self._loop.clock = reactor

    def record(self, item: Item, identity: Identity) -> None:
        """One whole file, or manifest, was sent to this identity. Beside ``MOST_PENDING`` others it is not counted."""
        if len(self._pending) >= MOST_PENDING:
            return
        self._pending.append(
            downloads.Download(
                kind="manifest" if isinstance(item, ImagePull) else "file",
                item_id=item.id,
                repository_id=item.repository_id,
                package_id=item.package_id,
                path=item.path,
                user_id=identity.user_id,
                token_id=identity.token_id,
                at_ms=self._clock.now_ms(),
            )
        )

    def startService(self) -> None:
        """Begin to flush now and then."""
        super().startService()  # type: ignore[no-untyped-call]
        self._loop.start(FLUSH_S, now=False)

    async def _stop(self) -> None:
        if self._loop.running:
            self._loop.stop()
        await self.flush()

    def stopService(self) -> Deferred[None]:
        """Write what is left."""
        super().stopService()  # type: ignore[no-untyped-call]
        return Deferred.fromCoroutine(self._stop())

    def flush(self) -> Deferred[None]:
        """
        Write what has gathered, and wait for what is being written already.

        While the catalog cannot be written, up to ``MOST_PENDING`` are kept for the next time. Any other failure is
        logged, and those downloads are lost.
        """
        return Deferred.fromCoroutine(self._flush()).addErrback(
            lambda failure: log.failure("downloads were not recorded", failure=failure)
        )

    async def _flush(self) -> None:
        async with self._writing.hold():
            while self._pending:
                batch, self._pending = self._pending[:FLUSH_ROWS], self._pending[FLUSH_ROWS:]
                try:
                    await self._catalog.write(downloads.record_downloads, batch)
                except (StorageFull, StorageFailed):  # which the catalog has logged
                    self._pending = batch + self._pending
                    return
