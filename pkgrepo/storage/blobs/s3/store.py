"""A blob store in a bucket of a server that speaks the S3 protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from datetime import datetime
from typing import cast
from uuid import uuid4

from zope.interface import implementer

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.pools import DiskQueue, Pools
from pkgrepo.errors import BlobMissing, Conflict, StorageFailed, TooLarge
from pkgrepo.interfaces import IBlobAddresses, IBlobStore, IBlobUpload
from pkgrepo.s3.bucket import Bucket
from pkgrepo.s3.documents import Part
from pkgrepo.s3.parts import PART, PartSender
from pkgrepo.s3.places import BucketPlace
from pkgrepo.s3.requests import Body, digest_body, make_requests
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.blobs.durability import storage_error
from pkgrepo.storage.blobs.paths import format_text, is_upload_id, new_upload_id, read_format
from pkgrepo.storage.blobs.s3.spool import Spool, SpoolFile
from pkgrepo.storage.blobs.s3.upload import SuspendedUpload, decode_state

from .names import BLOBS, FORMAT, UPLOADS, is_locator, parts_locator, rest_prefix, upload_of_parts, upload_of_rest
from .reading import BucketBlob
from .upload import BucketUpload, commit_together

REDIRECT_S = 300  # seconds in which a redirected client must begin to read, by the clock of the bucket
CACHED_DIGESTERS = 1024  # suspended uploads whose hash state is kept in memory, about 1 KiB each


@implementer(IBlobAddresses)
class BucketAddresses:
    """Signed addresses of copies in a bucket."""

    def __init__(self, store: BucketBlobStore, least_size: int) -> None:
        self.least_size = least_size
        self._store = store

    async def sign(self, locator: str) -> str:
        """Return an address for a client that follows a redirect now; see L{IBlobAddresses}."""
        return await self._store.signed_url(locator, REDIRECT_S)


@implementer(IBlobStore)
class BucketBlobStore:
    """
    The blobs of the storage ``name`` below a prefix of a bucket. Call ``start`` first, and ``stop`` at the end.

    ``uid`` is the storage's id in the catalog; a prefix of another storage is refused. Bytes of uploads, and copies
    that are wanted as files, pass through temporary files in ``spool``. An object of more than ``part_size`` bytes is
    sent in parts.
    """

    has_files = False
    growing = None

    def __init__(
        self,
        place: BucketPlace,
        *,
        name: str,
        pools: Pools,
        spool: Spool,
        uid: str | None = None,
        part_size: int = PART,
    ) -> None:
        self.name = name
        self.uid = uid
        self._place = place
        self._pools = pools
        self._spool = spool
        self._part_size = part_size
        self._active: set[str] = set()
        self._digesters: Lru[str, Digester] = Lru(CACHED_DIGESTERS)
        self.addresses = BucketAddresses(self, place.redirect_from) if place.redirect_from else None

    async def start(self, *, create: bool = True) -> None:
        """
        Check whose the prefix is; with ``create`` an empty one is taken.

        :raises Conflict: it belongs to another storage, or holds other things, or is missing
        :raises StorageFailed: the bucket cannot be read or written
        """
        self._requests = await make_requests(self._place, self._pools.disk)
        self._bucket = Bucket(self._requests, prefix=self._place.prefix, storage=self.name)
        found = await self._read_format()
        if found is None and create and await self._bucket.list_page("", limit=1):
            found = await self._read_format()  # of a process that started at the same time
            if found is None:
                raise Conflict(f"{self._where} holds other things already; a storage begins empty")
        if found is None and create:
            text = format_text(self.uid or str(uuid4()))
            # It is not there, or of a process that started at the same time: the id of the first one stays.
            await self._bucket.put(FORMAT, digest_body(text.encode("ascii")), same=False)
            found = await self._read_format()
        if found is None:
            raise Conflict(f"storage {self.name!r} is not in {self._where}, and nothing is made there")
        if self.uid is not None and found != self.uid:
            raise Conflict(f"{self._where} belongs to storage {found}, not to {self.uid}")
        self.uid = found

    def beside(self, prefix: str) -> Bucket:
        """The objects of the bucket below another prefix."""
        return Bucket(self._requests, prefix=prefix, storage=self.name)

    async def give_up(self) -> None:
        """Free the place of a storage that is removed, if it has no copies. :raises StorageFailed: it stays taken"""
        if not await self.scan(limit=1):
            await self._bucket.delete(FORMAT)

    async def stop(self) -> None:
        """Close the idle connections."""
        await self._requests.stop()

    def begin(
        self, expect_size: int | None = None, algorithms: Sequence[str] = (), limit: int | None = None
    ) -> BucketUpload:
        """
        Start an upload; nothing is visible until its ``commit``.

        :raises StorageFull: no room for ``expect_size`` among the temporary files
        :raises TooLarge: ``expect_size`` is over the limit; :raises ValueError: an unknown algorithm
        """
        if limit is not None and expect_size is not None and expect_size > limit:
            raise TooLarge(limit)
        self._check_room(expect_size or 0)
        digester = Digester(algorithms)
        return self._upload(new_upload_id(), digester=digester, limit=limit, file=self._spool.new_file())

    async def resume(self, upload_id: str, state: bytes, abandoned: bool = False) -> BucketUpload:  # noqa: ARG002
        """
        Continue a suspended upload, in any process. The caller must hold a lease on the upload.

        Parts that an ``abandoned`` one sends later have other checksums than those that the commit names: it fails.

        :raises BlobMissing: the upload is gone, or the state was not written by this program
        :raises StorageFailed: the store does not answer
        """
        try:
            known = decode_state(state)
            digester = Digester(known.digests)
        except ValueError:
            raise BlobMissing(upload_id) from None
        if not is_upload_id(upload_id) or not (known.rest or rest_prefix(upload_id)).startswith(rest_prefix(upload_id)):
            raise BlobMissing(upload_id)
        self._check_room(0)
        file = self._spool.new_file()
        queue = DiskQueue(self._pools.disk)
        self._active.add(upload_id)
        try:
            sent = await self._sent_parts(upload_id, known)
            if known.rest is not None:
                async for chunk in self._bucket.read(known.rest):
                    await queue.run(file.append, chunk)
            if file.size != known.rest_size:
                raise BlobMissing(upload_id)
        except BaseException as error:
            self._active.discard(upload_id)
            queue.run(file.release)
            if isinstance(error, OSError):
                raise storage_error(self.name, error) from error
            raise
        warm = self._digesters.pop(upload_id)
        is_warm = warm is not None and warm.digests() == known.digests
        return self._upload(
            upload_id,
            digester=warm if warm is not None and is_warm else digester,
            limit=known.limit,
            file=file,
            resumed=known,
            is_warm=is_warm,
            sent=sent,
        )

    async def commit_together(self, uploads: Sequence[IBlobUpload]) -> None:
        """
        Commit sealed uploads of this store at the same time, or leave nothing of any.

        :raises StorageFailed: they cannot be stored
        """
        if uploads:
            await commit_together(cast("Sequence[BucketUpload]", uploads))

    def open(self, locator: str) -> BucketBlob:
        """
        A stored copy, for reading; the store is asked when it is read.

        :raises BlobMissing: this is no locator
        """
        if not is_locator(locator):
            raise BlobMissing(locator)
        return BucketBlob(self._bucket, BLOBS + locator, storage=self.name, spool=self._spool, disk=self._pools.disk)

    async def signed_url(self, locator: str, life_s: int) -> str:
        """
        Return an address where anyone can read a copy for ``life_s`` seconds.

        :raises BlobMissing: this is no locator; :raises StorageFailed: there are no credentials
        """
        if not is_locator(locator):
            raise BlobMissing(locator)
        return await self._bucket.signed_url(BLOBS + locator, life_s)

    async def stat(self, locator: str) -> tuple[int, datetime] | None:
        """Return size in bytes and time of commit (aware UTC), or None if it does not exist."""
        return await self._bucket.stat(BLOBS + locator) if is_locator(locator) else None

    async def check(self, locator: str) -> None:  # noqa: ARG002 - a bucket has no folders
        """Make sure that the storage is there. :raises StorageFailed: it is not, or does not answer"""
        try:
            found = await self._read_format()
        except Conflict as error:
            raise StorageFailed(self.name) from error
        if found is None or found != self.uid:
            raise StorageFailed(self.name)

    async def delete(self, locator: str) -> None:
        """Remove a copy; a missing one is fine. :raises StorageFailed: it may still exist"""
        if is_locator(locator):
            await self._bucket.delete(BLOBS + locator)

    async def scan(self, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int, datetime]]:
        """Return up to ``limit`` copies as (locator, size, time of commit) after ``after``, ordered by locator."""
        found: list[tuple[str, int, datetime]] = []
        last = BLOBS + after if after else ""
        while len(found) < limit:
            page = await self._bucket.list_page(BLOBS, last, limit - len(found))
            if not page:
                break
            named = ((each.key.removeprefix(BLOBS), each.size, each.modified_at) for each in page)
            found += [each for each in named if is_locator(each[0])]
            last = page[-1].key
        return found

    async def sweep_uploads(self, older_than: datetime, keep: Iterable[str]) -> int:
        """
        Remove unfinished uploads last written before ``older_than`` that are not in ``keep``. Returns their number.

        Uploads that run in this process are kept. Those of other processes are recognised by their age only.
        """
        kept = self._active | set(keep)
        removed: set[str] = set()
        async for upload_id, each in self._old_parts(older_than):
            if upload_id not in kept:
                await self._bucket.abort_parts(BLOBS + parts_locator(upload_id), each)
                removed.add(upload_id)
        async for rest in self._bucket.iterate(UPLOADS):
            found = upload_of_rest(rest.key)
            if found is not None and found not in kept and rest.modified_at < older_than:
                await self._bucket.delete(rest.key)
                removed.add(found)
        return len(removed)

    def capacity(self) -> tuple[int, int] | None:
        """Return None: a bucket has no size."""
        return None

    # Below

    @property
    def _where(self) -> str:
        place = self._place
        return f"bucket {place.bucket!r} at {place.endpoint}" + (f" under {place.prefix!r}" if place.prefix else "")

    async def _read_format(self) -> str | None:
        """The id of the storage there; None if there is none. :raises Conflict: it is of another version"""
        try:
            data = b"".join([chunk async for chunk in self._bucket.read(FORMAT)])
        except BlobMissing:
            return None
        return read_format(data.decode("utf-8", "replace"), self._where)

    def _check_room(self, size: int) -> None:
        try:
            self._spool.check_room(self.name, size)
        except OSError as error:
            raise storage_error(self.name, error) from error

    async def _sent_parts(self, upload_id: str, known: SuspendedUpload) -> list[Part]:
        """The parts of a suspended upload. :raises BlobMissing: they are not all there"""
        if known.parts_id is None:
            return []
        found = await self._bucket.list_parts(BLOBS + parts_locator(upload_id), known.parts_id)
        sent = sorted((part for part in found if part.number <= known.parts), key=lambda part: part.number)
        if len(sent) != known.parts or sum(part.size for part in sent) != known.in_parts:
            raise BlobMissing(upload_id)
        return sent

    async def _old_parts(self, older_than: datetime) -> AsyncIterator[tuple[str, str]]:
        """Uploads in parts without a part since ``older_than``, as their id and that of the parts."""
        async for each in self._bucket.iterate_uploads():
            upload_id = upload_of_parts(each.key)
            if upload_id is None or each.begun_at >= older_than:
                continue
            try:
                parts = await self._bucket.list_parts(each.key, each.id)
            except BlobMissing:
                continue
            if all(part.modified_at is None or part.modified_at < older_than for part in parts):
                yield upload_id, each.id

    def _on_end(self, upload_id: str, digester: Digester | None) -> None:
        self._active.discard(upload_id)
        if digester is not None:
            self._digesters.put(upload_id, digester)

    def _upload(
        self,
        upload_id: str,
        *,
        digester: Digester,
        limit: int | None,
        file: SpoolFile,
        resumed: SuspendedUpload | None = None,
        is_warm: bool = False,
        sent: Sequence[Part] = (),
    ) -> BucketUpload:
        self._active.add(upload_id)
        queue = DiskQueue(self._pools.disk)
        before = 0 if resumed is None else resumed.in_parts

        def read(start: int, count: int) -> Awaitable[Body]:
            return queue.run(file.body, start - before, count)

        def digest(data: bytes) -> Awaitable[Body]:
            return queue.run(digest_body, data)

        parts = PartSender(
            self._bucket,
            BLOBS + parts_locator(upload_id),
            read=read,
            digest=digest,
            size=self._part_size,
            id=None if resumed is None else resumed.parts_id,
            sent=sent,
        )
        return BucketUpload(
            upload_id,
            storage=self.name,
            bucket=self._bucket,
            queue=queue,
            file=file,
            digester=digester,
            limit=limit,
            on_end=self._on_end,
            parts=parts,
            part_size=self._part_size,
            resumed=resumed,
            is_warm=is_warm,
        )
