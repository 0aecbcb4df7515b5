"""
Moves the copies of a storage from its folder to a bucket, or back, while servers use it.

=========  ==================================================  ======================================================
state      reads and writes                                    next state
=========  ==================================================  ======================================================
before     in the old place                                    ``begin_move``: moving
moving     new bytes go to the new place; what is read, and    ``end_move``, once no row names a copy in the old
           uploads that were suspended, may be in either       place and none can be made there: after
after      in the new place; the old one stays, unused         none
=========  ==================================================  ======================================================

Each copy is made, with its digest compared, before the row of its blob names it. So a crash leaves at most a copy that
no row names, which a sweep removes, and the same call goes on with the blobs that are not moved yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import Factory, define
from twisted.internet.defer import CancelledError, Deferred, gatherResults

from pkgrepo.errors import Conflict
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.sweep import UPLOAD_GRACE
from pkgrepo.storage.blobs.moving import MovingBlobStore
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.server import storages

PAGE: Final = 200
PARALLEL: Final = 8  # blobs that are moved at once: small ones wait for the network most of the time
NOTICE: Final = timedelta(seconds=30)  # in which every server has seen that the storage has another place


@define
class MoveReport:
    """
    What was done. ``blobs`` and ``size`` are those in the new place now, ``moved`` by this call.

    ``problems`` are sentences about blobs that could not be moved; ``lost`` are known to be damaged or missing.
    ``ends_at`` is when the move can end, if that is in the future.
    """

    blobs: int = 0
    size: int = 0
    moved: int = 0
    moved_size: int = 0
    lost: int = 0
    uploads: int = 0
    ended: bool = False
    ends_at: datetime | None = None
    problems: list[str] = Factory(list)


class StorageMove(MaintenanceWork):
    """Moves a storage whose move has begun, and ends the move when nothing is left in the old place."""

    def __init__(self, context: MaintenanceContext, *, progress: Progress) -> None:
        super().__init__(context)
        self._progress = progress
        self._report = MoveReport()

    async def run(self, storage: Storage, *, stopped: bool) -> MoveReport:
        """
        Move what is in the old place. ``stopped`` says that no server runs, so that no upload can end there.

        :raises Conflict: the storage is not being moved, or its new place lacks copies that rows name
        :raises StorageFailed: a place does not answer
        """
        store = await self._stores.open(storage)
        if not isinstance(store, MovingBlobStore):
            raise Conflict(f"storage {storage.name!r} is not being moved")
        report = self._report
        begun_ms = int(storage.settings["before"]["begun_ms"])
        await self._move_blobs(storage, store)
        if report.problems:
            return report
        before_ms = begun_ms + (0 if stopped else int(NOTICE.total_seconds() * 1000))
        report.uploads = await self._catalog.scan(blobs.count_uploads, storage.id, before_ms)
        if report.uploads:
            return report
        ends_at = from_ms(begun_ms) + NOTICE + UPLOAD_GRACE
        if not stopped and from_ms(self._clock.now_ms()) < ends_at:
            report.ends_at = ends_at
            return report
        await self._count(storage, store)
        await self._catalog.write(storages.end_move, storage, now_ms=self._clock.now_ms())
        report.ended = True
        return report

    async def left(self, storage: Storage) -> tuple[int, int]:
        """How many blobs are not moved yet, and their bytes; also of a storage whose move has not begun."""
        store = await self._stores.open(storage)
        count = size = 0
        after = b""
        while page := await self._catalog.scan(blobs.list_blobs, storage.id, after, PAGE):
            for info in page:
                if not (isinstance(store, MovingBlobStore) and store.is_moved(info.locator)):
                    count, size = count + 1, size + info.size
            after = bytes.fromhex(page[-1].sha256)
        return count, size

    async def _move_blobs(self, storage: Storage, store: MovingBlobStore) -> None:
        total = await self._catalog.scan(blobs.count_blobs, storage.id)
        self._progress.begin(f"blobs of {storage.name}", total)
        after = b""
        while page := await self._catalog.scan(blobs.list_blobs, storage.id, after, PAGE):
            for start in range(0, len(page), PARALLEL):
                await self._move_some(storage, store, page[start : start + PARALLEL])
            after = bytes.fromhex(page[-1].sha256)
        self._progress.end()

    async def _move_some(self, storage: Storage, store: MovingBlobStore, some: Sequence[BlobInfo]) -> None:
        works: list[Deferred[Any]] = [Deferred.fromCoroutine(self._move(storage, store, info)) for info in some]
        await gatherResults(works, consumeErrors=True)
        self._progress.step(len(some))

    async def _move(self, storage: Storage, store: MovingBlobStore, info: BlobInfo) -> None:
        try:
            if store.is_moved(info.locator):
                return
            copy = await move_copy(store.old, store.new, info)
        except FAILURES as error:
            if not await self._catalog.look(blobs.is_suspect, storage.id, info.sha256):
                self._report.problems.append(f"{storage.name}: blob {info.sha256} cannot be moved: {reason_of(error)}")
            return
        if await self._catalog.write(blobs.set_locator, storage.id, info.sha256, info.locator, copy.locator):
            self._report.moved += 1
            self._report.moved_size += info.size
        else:
            await store.new.delete(copy.locator)  # removed, or stored again, meanwhile

    async def _count(self, storage: Storage, store: MovingBlobStore) -> None:
        """Compare what the new place has with the rows. :raises Conflict: copies that rows name are missing there"""
        self._progress.begin(f"copies of {storage.name}", 0)
        report = self._report
        after = ""
        while page := await store.new.scan(after, PAGE):
            unknown = set(await self._catalog.scan(blobs.unknown_locators, storage.id, [each[0] for each in page]))
            named = [size for locator, size, _ in page if locator not in unknown]
            report.blobs += len(named)
            report.size += sum(named)
            self._progress.step(len(page))
            after = page[-1][0]
        self._progress.end()
        found = await self._catalog.scan(blobs.usage_by_state, storage.id)
        count, size = found.get("live", (0, 0))
        report.lost = found.get("suspect", (0, 0))[0]
        # Beside servers copies are added while they are counted, so there may be more of them.
        if report.blobs < count or report.size < size:
            raise Conflict(
                f"the new place has {report.blobs} copies of {report.size} bytes, but the catalog names {count} of "
                f"{size}: 'pkgrepo verify' finds those that are missing"
            )


async def move_copy(old: IBlobStore, new: IBlobStore, info: BlobInfo) -> BlobInfo:
    """
    Store the bytes of a copy in another store.

    :raises BlobMissing: it is not there; :raises DigestMismatch: or ``SizeMismatch``, its bytes are damaged
    :raises StorageFailed: or ``StorageFull``
    """
    async with new.begin(info.size) as upload:
        try:
            await old.open(info.locator).deliver(upload, 0, info.size)
        except CancelledError:
            await upload.drained()  # raises what stopped the delivery
            raise
        except ValueError:
            pass  # the copy is shorter, which the commit notices
        copy: BlobInfo = await upload.commit({"sha256": info.sha256}, info.size)
    return copy
