"""
A blob store of files below one directory.

Any number of processes may use one directory at a time: names are random, a file becomes visible by its final link or
rename, and a process keeps no state in memory that it could not read again from the disk.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.pools import DiskQueue, Pools
from pkgrepo.errors import BlobMissing, Conflict, PkgrepoError, StorageFailed, StorageFull, TooLarge, TooManyOpenFiles
from pkgrepo.interfaces import IBlobStore, IBlobUpload, IGrowingFiles
from pkgrepo.storage.blobs.paths import scan_blobs, sweep_uploads
from pkgrepo.storage.blobs.upload import UploadState
from pkgrepo.storage.free_space import free_and_total, low_water

from .digester import Digester
from .durability import Durability, Fsync, storage_error
from .paths import FIRST_FILE, StorePaths, is_locator, is_upload_id, new_upload_id
from .reading import FilesystemBlob
from .slice_writer import SLICE
from .upload import Commits, FilesystemUpload
from .upload_file import UploadFile

T = TypeVar("T")
P = ParamSpec("P")

log = Logger()

CAPACITY_AGE_S = 1.0  # seconds for which the free space is cached
CACHED_DIGESTERS = 1024  # suspended uploads whose hash state is kept in memory, about 1 KiB each

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@implementer(IBlobStore, IGrowingFiles)
class FilesystemBlobStore:
    """
    The blobs of the storage ``name`` in the folder ``root``. Call ``start`` first.

    ``uid`` is the storage's id in the catalog; a folder of another storage is refused. No upload begins with fewer free
    bytes than ``low_water``. ``fsync="never"`` gives up durability for speed. ``found_by_name`` is for a store without
    rows, whose copies are found again by ``scan`` after a crash: each has its bytes on disk before it has its name.
    """

    has_files = True
    addresses = None

    def __init__(
        self,
        root: Path,
        *,
        name: str,
        pools: Pools,
        uid: str | None = None,
        low_water: int | None = None,
        fsync: Fsync = "always",
        found_by_name: bool = False,
        clock: Callable[[], float] = time.monotonic,
        cached_digesters: int = CACHED_DIGESTERS,
    ) -> None:
        self.name = name
        self.uid = uid
        self.paths = StorePaths(root)
        self._pools = pools
        self._low_water = low_water
        self._durability = Durability(fsync)
        self._found_by_name = found_by_name
        self._commits = Commits(pools.disk)
        self._clock = clock
        self._capacity: tuple[float, tuple[int, int]] | None = None
        self._unnamed = False
        self._active: set[str] = set()
        self._digesters: Lru[str, Digester] = Lru(cached_digesters)

    async def start(self, *, create: bool = True) -> None:
        """
        Create or check the folder; without ``create`` a missing folder is not created.

        :raises Conflict: it belongs to another storage, or is of a newer version, or spans two file systems
        :raises StorageFailed: it cannot be written, or is missing; :raises StorageFull: it is full
        """
        self.uid = await self._on_disk(self.paths.prepare, self._durability, self.uid, create=create)
        self._unnamed = await self._on_disk(self.paths.supports_unnamed_files)
        if not self._found_by_name:
            await self._on_disk(self._durability.prepare, self.paths.uploads)  # it may be a link to another disk

    def begin(
        self, expect_size: int | None = None, algorithms: Sequence[str] = (), limit: int | None = None
    ) -> FilesystemUpload:
        """
        Start an upload; nothing is visible until its ``commit``.

        ``algorithms`` are names of ``hashlib``, or ``blake2b_256``. The disk is asked for its free space only.

        :raises StorageFull: no room for ``expect_size``, or the free space is under the low-water mark
        :raises TooLarge: ``expect_size`` is over the limit; :raises ValueError: an unknown algorithm
        """
        if limit is not None and expect_size is not None and expect_size > limit:
            raise TooLarge(limit)
        free, total = self.capacity()
        if free - (expect_size or 0) < low_water(total, self._low_water):
            raise StorageFull(self.name)
        # A body of one slice is written by one call, so a reservation would gain nothing.
        reserve = expect_size if expect_size is not None and expect_size > SLICE else 0
        upload_id = new_upload_id()
        file = self._new_file(upload_id, reserve)
        queue = DiskQueue(self._pools.disk)
        return self._upload(upload_id, queue=queue, file=file, digester=Digester(algorithms), limit=limit)

    async def resume(self, upload_id: str, state: bytes, abandoned: bool = False) -> FilesystemUpload:
        """
        Continue a suspended upload, in any process.

        Bytes beyond the suspended offset are dropped. The caller must hold a lease on the upload: two processes that
        resumed it would overwrite each other's bytes. If an ``abandoned`` one may wake up, this one gets a copy.

        :raises BlobMissing: the upload is gone, or the state was not written by this program
        :raises StorageFailed: the file cannot be opened
        """
        try:
            known = UploadState.decode(state)
            digester = Digester(known.digests)
        except ValueError:
            raise BlobMissing(upload_id) from None
        if not is_upload_id(upload_id):
            raise BlobMissing(upload_id)
        file = self._new_file(upload_id, name=known.file)
        queue = DiskQueue(self._pools.disk)
        await self._reopen(upload_id, file, queue, known.offset, copied=abandoned)
        warm = self._digesters.pop(upload_id)
        recorded: Mapping[str, str] | None = None
        if warm is not None and warm.digests() == known.digests:
            digester = warm
        elif known.offset:
            recorded = known.digests
        return self._upload(upload_id, queue=queue, file=file, digester=digester, limit=known.limit, recorded=recorded)

    @property
    def growing(self) -> FilesystemBlobStore:
        """The files of uploads that grow, for other processes."""
        return self

    async def expose(self, upload: IBlobUpload) -> None:
        """Let other processes open the bytes of an upload; see L{IGrowingFiles}."""
        await cast("FilesystemUpload", upload).expose()

    def open_growing(self, upload_id: str) -> int:
        """
        A descriptor of the bytes of an exposed upload of another process, which the caller closes; takes microseconds.

        :raises BlobMissing: the blob does not exist; :raises StorageFailed: it cannot be opened
        """
        try:
            return os.open(self._growing_folder(upload_id) / FIRST_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._explain(error, upload_id) from error

    async def take_over(self, upload_id: str, offset: int, algorithms: Sequence[str] = ()) -> FilesystemUpload:
        """
        Continue an exposed upload whose process has ended, after its first ``offset`` bytes; see L{IGrowingFiles}.

        :raises BlobMissing: it is gone; :raises StorageFailed: the file cannot be opened
        """
        self._growing_folder(upload_id)
        file, queue = self._new_file(upload_id), DiskQueue(self._pools.disk)
        await self._reopen(upload_id, file, queue, offset)
        upload = self._upload(upload_id, queue=queue, file=file, digester=Digester(algorithms), limit=None)
        upload.reread()
        return upload

    async def commit_together(self, uploads: Sequence[IBlobUpload]) -> None:
        """
        Commit sealed uploads of this store with the fsync calls of one, or leave nothing of any.

        :raises StorageFull: or ``StorageFailed``
        """
        if uploads:
            await self._commits.commit(cast("Sequence[FilesystemUpload]", uploads))

    def open(self, locator: str) -> FilesystemBlob:
        """
        Open a stored blob for reading. Opens the file in the calling thread, which takes microseconds.

        :raises BlobMissing: nothing is stored under this locator; :raises StorageFailed: the file cannot be opened
        """
        if not is_locator(locator):
            raise BlobMissing(locator)
        try:
            fd = os.open(self.paths.blob(locator), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._explain(error, locator) from error
        return FilesystemBlob(fd, os.fstat(fd).st_size, storage=self.name, disk=self._pools.disk)

    async def stat(self, locator: str) -> tuple[int, datetime] | None:
        """Return size in bytes and time of commit (aware UTC), or None if it does not exist."""
        if not is_locator(locator):
            return None
        try:
            found = await self._pools.disk(os.lstat, self.paths.blob(locator))
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise self._explain(error) from error
        return found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)

    async def check(self, locator: str) -> None:
        """
        Make sure that the storage is there: its disk is mounted, and answers.

        :raises StorageFailed: it is not; :raises TooManyOpenFiles: this process cannot tell
        """
        try:
            await self._on_disk(self.paths.check, self.uid, locator)
        except Conflict as error:
            log.warn("{reason}", reason=str(error))
            raise StorageFailed(self.name) from error

    async def delete(self, locator: str) -> None:
        """
        Remove a copy; a missing one is fine. Open readers are not disturbed.

        There is no fsync: after a power cut the copy may exist again, and ``scan`` lists it.

        :raises StorageFailed: it still exists
        """
        if is_locator(locator):
            await self._on_disk(self.paths.blob(locator).unlink, missing_ok=True)

    async def scan(self, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int, datetime]]:
        """Return up to ``limit`` copies as (locator, size, time of commit) after ``after``, ordered by locator."""
        return await self._on_disk(scan_blobs, self.paths, after, limit)

    async def sweep_uploads(self, older_than: datetime, keep: Iterable[str]) -> int:
        """
        Remove unfinished uploads last written before ``older_than`` that are not in ``keep``. Returns their number.

        Uploads that run in this process are kept. Those of other processes are recognised by their age only.
        """
        kept = frozenset(keep)
        return await self._on_disk(
            sweep_uploads, self.paths, older_than, lambda upload_id: upload_id in kept or upload_id in self._active
        )

    def capacity(self) -> tuple[int, int]:
        """
        Return the free and total bytes of the storage, at most a second old.

        :raises StorageFailed: they cannot be read
        """
        now = self._clock()
        if self._capacity is None or now - self._capacity[0] >= CAPACITY_AGE_S:
            try:
                found = free_and_total(self.paths.root)
            except OSError as error:
                raise storage_error(self.name, error) from error
            self._capacity = now, found
        return self._capacity[1]

    async def _reopen(
        self, upload_id: str, file: UploadFile, queue: DiskQueue, offset: int, *, copied: bool = False
    ) -> None:
        self._active.add(upload_id)
        try:
            await queue.run(file.reopen, offset, copied)
        except BaseException as error:
            self._active.discard(upload_id)
            if isinstance(error, OSError):
                raise self._explain(error, upload_id) from error
            # Cancelled: the thread may still open the file. The suspended upload stays on the disk.
            queue.run(file.release)
            raise

    def _growing_folder(self, upload_id: str) -> Path:
        """:raises BlobMissing: no upload has such an id"""
        if not is_upload_id(upload_id):
            raise BlobMissing(upload_id)
        return self.paths.upload(upload_id)

    def _new_file(self, upload_id: str, reserve: int = 0, name: str = FIRST_FILE) -> UploadFile:
        return UploadFile(self.paths, self._durability, upload_id, name, unnamed=self._unnamed, reserve=reserve)

    def _on_end(self, upload_id: str, digester: Digester | None) -> None:
        self._active.discard(upload_id)
        if digester is not None:
            self._digesters.put(upload_id, digester)

    def _upload(
        self,
        upload_id: str,
        *,
        queue: DiskQueue,
        file: UploadFile,
        digester: Digester,
        limit: int | None,
        recorded: Mapping[str, str] | None = None,
    ) -> FilesystemUpload:
        self._active.add(upload_id)
        return FilesystemUpload(
            upload_id,
            commits=self._commits,
            storage=self.name,
            queue=queue,
            file=file,
            digester=digester,
            limit=limit,
            on_end=self._on_end,
            recorded=recorded,
        )

    async def _on_disk(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._pools.disk(func, *args, **kwargs)
        except OSError as error:
            raise self._explain(error) from error

    def _explain(self, error: OSError, missing: str | None = None) -> PkgrepoError:
        """Return the domain error: BlobMissing for ``missing`` if there is no file, else a storage error, logged."""
        if missing is not None and error.errno in _ABSENT:
            return BlobMissing(missing)
        explained = storage_error(self.name, error)
        if not isinstance(explained, TooManyOpenFiles):
            log.error("storage {storage} failed: {error}", storage=self.name, error=str(error))
        return explained
