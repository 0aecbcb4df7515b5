"""
An upload into a bucket, from its first byte to its commit; its phases are in `pkgrepo.storage.blobs.receiving`.

The bytes pass through a temporary file, of which readers have descriptors. An upload that was resumed has none, and
frees the bytes of the file that were sent. A producer that is faster than the store is paused.

What fits into one part is sent by one request when it is committed. More is sent in parts while it arrives; the commit
sends the last and makes the object.

A suspended upload has its whole parts in the bucket, and the rest as an object. Parts cannot be read before the object
is made: if another process goes on with such an upload, the digests are computed from the object when it is sealed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.concurrency.pools import DiskQueue
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import PkgrepoError, StorageFailed
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo
from pkgrepo.s3.bucket import Bucket
from pkgrepo.s3.parts import PART, PartSender
from pkgrepo.s3.requests import Body
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.blobs.receiving import Phase, ReceivedUpload
from pkgrepo.storage.blobs.s3.names import BLOBS, new_rest_key, parts_locator, rest_prefix
from pkgrepo.storage.blobs.s3.reading import digest_object
from pkgrepo.storage.blobs.s3.spool import SpoolFile
from pkgrepo.storage.blobs.slice_writer import HIGH_WATER

VERSION = 1


BACKLOG: Final = 3  # parts that wait to be sent, beside those under way, when the producer is paused


class SuspendedUpload(msgspec.Struct, frozen=True, kw_only=True, tag="s3", tag_field="store"):
    """
    ``in_parts`` of its ``offset`` bytes are the first ``parts`` of the parts upload ``parts_id``, the ``rest_size``
    others the object ``rest``.

    ``digests`` are those of all bytes, by name. Values are empty if no process has seen all bytes: then the object is
    read again when it is sealed.
    """

    version: int = VERSION
    offset: int
    limit: int | None
    digests: dict[str, str]
    parts_id: str | None = None
    parts: int = 0
    in_parts: int = 0
    rest: str | None = None
    rest_size: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the digests are known."""
        return all(self.digests.values())

    def encode(self) -> bytes:
        """Return at most 4 KiB."""
        return msgspec.json.encode(self)


def decode_state(data: bytes) -> SuspendedUpload:
    """
    Return the state that ``encode`` wrote.

    :raises ValueError: the data has another form
    """
    state = msgspec.json.decode(data, type=SuspendedUpload)  # its errors are ValueErrors
    sizes = (state.offset, state.parts, state.in_parts, state.rest_size)
    if (
        state.version != VERSION
        or "sha256" not in state.digests
        or min(sizes) < 0
        or state.in_parts + state.rest_size != state.offset
        or (state.parts > 0) != (state.parts_id is not None)
        or (state.rest_size > 0) != (state.rest is not None)
    ):
        raise ValueError("not the state of an upload")
    return state


@implementer(IBlobUpload)
class BucketUpload(ReceivedUpload):
    """
    One upload; ``BucketBlobStore`` makes them.

    ``resumed`` is the state of one that an earlier request suspended, of which ``file`` has the rest. ``is_warm`` says
    that ``digester`` has seen its bytes. ``part_size``: see L{PartSender}.
    """

    _file: SpoolFile

    def __init__(
        self,
        upload_id: str,
        *,
        storage: str,
        bucket: Bucket,
        queue: DiskQueue,
        file: SpoolFile,
        digester: Digester,
        limit: int | None,
        on_end: Callable[[str, Digester | None], None],
        parts: PartSender,
        part_size: int = PART,
        resumed: SuspendedUpload | None = None,
        is_warm: bool = False,
    ) -> None:
        before = 0 if resumed is None else resumed.in_parts
        reread = resumed is not None and not is_warm and not before and resumed.offset > 0
        super().__init__(
            upload_id,
            storage=storage,
            queue=queue,
            file=file,
            digester=digester,
            limit=limit,
            on_end=on_end,
            recorded=resumed.digests if resumed is not None and reread else None,
            before=before,
        )
        self._storage = storage
        self._bucket = bucket
        self._parts = parts
        self._part_size = part_size
        self._resumed = resumed
        self._is_cold = resumed is not None and not is_warm and bool(before)
        self._before = before
        self._placing = DeferredLock()
        self._is_placed = False
        self._made: set[str] = set()  # keys of objects that may exist
        self._is_held = False  # the producer, until fewer bytes wait to be sent
        self._has_freed = False  # bytes of the file
        parts.on_sent = self._part_was_sent

    def write(self, data: bytes) -> None:
        """Take the next bytes. :raises TooLarge: past the limit"""
        super().write(data)
        if self._phase is Phase.RECEIVING:
            self._parts.offer(self._before + self._slices.readable)
            self._hold_or_resume()

    def descriptor(self) -> int:
        """
        Return a new file descriptor for reading the sealed bytes, or the ``readable`` ones; the caller closes it.

        :raises StorageFailed: there is none: the first bytes of a resumed upload may be in the bucket only
        """
        if self._before or self._has_freed:
            raise StorageFailed(self._storage)
        return super().descriptor()

    async def place(self) -> None:
        """
        Make the sealed bytes an object, for ``commit_together``.

        :raises StorageFailed: it cannot be made; :raises CancelledError: the upload was aborted
        """
        sealed = self._sealed
        async with self._placing:
            if self.is_aborted or sealed is None:
                raise CancelledError
            await self._place(sealed.locator, sealed.sha256)
        if self._resumed is not None and not self._keeps_state:
            with suppress(PkgrepoError):  # the blob is durable; the rests are swept
                await self._remove_rests()
        self._queue.run(self._file.release)

    def begin_commit(self) -> None:
        """Enter the phase of the commit."""
        self._phase = Phase.ENDING

    # Below

    def _part_was_sent(self, place: tuple[int, int] | None) -> None:
        if place is not None and self._resumed is not None:
            self._has_freed = True
            self._queue.run(self._file.forget, place[0] - self._before, place[1])
        self._hold_or_resume()

    def _hold_or_resume(self) -> None:
        """Let the producer wait while the store takes bytes more slowly than it gives them."""
        # Less than a part waits for more bytes, so the last one must not hold the producer.
        is_held = self._parts.backlog > (1 if self._is_held else BACKLOG) * self._parts.next_size
        if is_held is not self._is_held:
            self._is_held = is_held
            pressure = self._slices.pressure
            (pressure.add if is_held else pressure.remove)(HIGH_WATER)

    async def _commit(self) -> None:
        await commit_together([self])

    async def _place(self, locator: str, sha256: str) -> None:
        if self._is_placed:
            return
        key = BLOBS + locator
        self._made.add(key)
        if self._in_parts:
            await self._parts.complete(self.offset)
        elif self.data is not None:
            await self._bucket.put(key, Body(self.data, sha256))
        else:
            await self._bucket.put(key, await self._queue.run(self._file.body, 0, self.offset))
        self._is_placed = True

    @property
    def _in_parts(self) -> bool:
        return self._parts.is_begun or self.offset > self._part_size

    def _new_locator(self, sha256: str) -> str:
        return parts_locator(self.id) if self._in_parts else super()._new_locator(sha256)

    async def _seal_rest(self, expected: Mapping[str, str]) -> BlobInfo:
        if not self._is_cold:
            return await super()._seal_rest(expected)
        digests = await self._digests()
        if digests is None:
            locator = parts_locator(self.id)
            async with self._placing:
                if self.is_aborted:
                    raise CancelledError
                await self._place(locator, "")
            digests = await digest_object(
                self._bucket, BLOBS + locator, self.offset, self._slices.algorithms, self._queue, self._storage
            )
        return self._blob(digests, expected)

    async def _digests(self) -> Mapping[str, str] | None:
        """The digests after the last byte; None if no process has seen all bytes."""
        digests: Mapping[str, str] = await self._slices.run_last(self._slices.digests)
        if not self._is_cold:
            return digests
        resumed = self._resumed
        assert resumed is not None, "only a resumed upload is cold"
        return resumed.digests if resumed.offset == self.offset and resumed.is_known else None

    def _final_digester(self) -> Digester | None:
        return None if self._is_cold else super()._final_digester()

    async def _keep(self) -> bytes:
        digests = await self._digests()
        async with self._placing:
            if self._parts.is_begun or self.offset > self._part_size:
                await self._parts.send_whole_parts(self.offset)
            rest, rest_size = await self._keep_rest()
        if self.is_aborted:
            raise CancelledError
        self._queue.run(self._file.release)
        return SuspendedUpload(
            offset=self.offset,
            limit=self._limit,
            digests=dict.fromkeys(self._slices.algorithms, "") if digests is None else dict(digests),
            parts_id=self._parts.id if self._parts.is_begun else None,
            parts=self._parts.count,
            in_parts=self._parts.taken,
            rest=rest,
            rest_size=rest_size,
        ).encode()

    async def _keep_rest(self) -> tuple[str | None, int]:
        """Store the bytes that are too few for a part. Returns the key of their object, and how many they are."""
        resumed, size = self._resumed, self.offset - self._parts.taken
        if not size:
            return None, 0
        if resumed is not None and resumed.offset == self.offset:
            return resumed.rest, size
        body = await self._queue.run(self._file.body, self._parts.taken - self._before, size)
        key = new_rest_key(self.id)
        self._made.add(key)
        await self._bucket.put(key, body)
        return key, size

    async def _discard(self) -> None:
        for each in (self._discard_parts, self._discard_objects, self._discard_rests):
            with suppress(PkgrepoError):  # it was logged; a sweep removes what stays
                await each()
        await self._queue.run(self._file.release)

    async def _forget(self) -> None:
        for each in (self._discard_parts, self._discard_rests) if self.is_aborted else (self._discard_rests,):
            with suppress(PkgrepoError):  # it was logged; a sweep removes what stays
                await each()

    async def _discard_parts(self) -> None:
        kept = self._keeps_state and self._resumed is not None and self._resumed.parts_id is not None
        if not self._is_placed and not kept:
            await self._parts.abort()

    async def _discard_objects(self) -> None:
        # A request that is under way may still make the object.
        async with self._placing:
            for key in self._made:
                await self._bucket.delete(key)

    async def _discard_rests(self) -> None:
        if self._resumed is not None and not self._keeps_state:
            await self._remove_rests()

    async def _remove_rests(self) -> None:
        async for each in self._bucket.iterate(rest_prefix(self.id)):
            await self._bucket.delete(each.key)


async def commit_together(uploads: Sequence[BucketUpload]) -> None:
    """
    Make sealed uploads of one store durable and visible at the same time, or leave nothing of any.

    :raises StorageFailed: it failed; :raises CancelledError: one was aborted meanwhile
    :raises RuntimeError: one is not sealed, or was committed already; all stay as they are
    """
    if not all(each.is_sealed for each in uploads):
        raise RuntimeError("only sealed uploads are committed together")
    for each in uploads:
        each.begin_commit()
    try:
        await _all([shield(each.place()) for each in uploads])
        if any(each.is_aborted for each in uploads):
            raise CancelledError
    except BaseException:
        for each in uploads:
            await each.abort()
        raise
    for each in uploads:
        each.end_commit()


async def _all(works: Sequence[Awaitable[None]]) -> None:
    """Wait for all. :raises Exception: the first error, once all have ended"""
    outcomes: Any = await DeferredList([Deferred.fromCoroutine(_coroutine(each)) for each in works], consumeErrors=True)
    for _, outcome in outcomes:
        if isinstance(outcome, Failure):
            outcome.raiseException()


async def _coroutine(work: Awaitable[None]) -> None:
    await work
