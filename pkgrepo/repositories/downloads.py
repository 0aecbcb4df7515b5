"""Records downloads: counted for each package, and logged for each token."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Identity
from pkgrepo.storage.catalog import usage_counts

from .clock import Clock

FLUSH_S = 10.0  # seconds between two writes; a crash loses the downloads of that time
FLUSH_ROWS = 5000
MAX_PENDING = 200_000  # downloads, some 40 MB: those of minutes in which the catalog cannot be written


class Item(Protocol):
    """What is recorded when it was sent completely, usually a file."""

    @property
    def id(self) -> int:
        """The catalog key."""

    @property
    def repository_id(self) -> int:
        """The catalog key of the repository."""

    @property
    def package_id(self) -> int | None:
        """The catalog key of the package, if it has one."""

    @property
    def path(self) -> str:
        """The path in the repository."""


@frozen
class ImagePull:
    """The manifest of an image. A request for it counts as a pull, whatever layers the client already has."""

    id: int
    repository_id: int
    package_id: int
    path: str


@frozen
class CachedBlob:
    """A blob of an image in a proxy repository: a hit of its cache, and no download, since images are pulled whole."""

    repository_id: int
    package_id: int
    path: str
    size: int
    id: int = 0


class DownloadRecorder(PeriodicTask):
    """Collects downloads in memory and writes them in batches."""

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        failed = "downloads were not recorded"
        super().__init__(self.flush, reactor, every_s=FLUSH_S, what="downloads", failed=failed, last=self.flush)
        self._catalog = catalog
        self._clock = clock
        self._pending: list[usage_counts.Download] = []
        self._writing = FairSemaphore(1, reactor)

    def record(self, item: Item, identity: Identity, *, fetched: bool = False) -> None:
        """
        Record that an item was sent to an identity; dropped if ``MAX_PENDING`` are waiting to be written.

        What was ``fetched`` from an upstream at the same time is no hit of the cache.
        """
        if len(self._pending) >= MAX_PENDING:
            return
        self._pending.append(
            usage_counts.Download(
                kind=_kind(item),
                item_id=item.id,
                repository_id=item.repository_id,
                package_id=item.package_id,
                path=item.path,
                user_id=identity.user_id,
                token_id=identity.token_id,
                at_ms=self._clock.now_ms(),
                size=item.size if isinstance(item, CachedBlob) else None,
                fetched=fetched,
            )
        )

    async def flush(self) -> None:
        """
        Write the collected downloads, and wait for a write that already runs.

        While the catalog cannot be written, up to ``MAX_PENDING`` downloads are kept for the next flush. With any other
        failure the batch is lost.
        """
        async with self._writing.hold():
            while self._pending:
                batch, self._pending = self._pending[:FLUSH_ROWS], self._pending[FLUSH_ROWS:]
                try:
                    await self._catalog.write(usage_counts.record_downloads, batch)
                except (StorageFull, StorageFailed):  # which the catalog has logged
                    self._pending = batch + self._pending
                    return


def _kind(item: Item) -> usage_counts.Kind:
    if isinstance(item, CachedBlob):
        return "blob"
    return "manifest" if isinstance(item, ImagePull) else "file"
