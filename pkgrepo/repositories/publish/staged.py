"""
Blobs that were received and are not in the catalog yet.

==========  =================================================================  ======================================
state       meaning                                                            next state by
==========  =================================================================  ======================================
sealed      all bytes are received; a crash removes them                       ``commit_early``, ``claim``, ``clear``
committing  they are being made durable while the format inspects them         ``claim``, ``clear``
claimed     they belong to one write command, which commits or deletes them    ``Claim.commit``, ``Claim.delete``
==========  =================================================================  ======================================
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import define
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import PkgrepoError, StorageFailed
from pkgrepo.interfaces import IBlobStore, IBlobUpload, IGrowingFiles
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.room import FORM_SLACK, Room
from pkgrepo.storage.blobs.durability import reading

log = Logger()

T = TypeVar("T")


class Staged:
    """
    The unpublished blobs of a request, which ``clear`` removes.

    Blobs that were received in this request are sealed, and committed together when they are published. ``storage`` is
    the name of that of ``store``.
    """

    def __init__(self, storage: str, store: IBlobStore, room: Room | None = None) -> None:
        self._storage = storage
        self._store = store
        self.room = Room() if room is None else room
        self._sealed: dict[str, IBlobUpload] = {}
        self._committing: dict[str, Deferred[None]] = {}
        self._locators: list[str] = []

    @property
    def growing(self) -> IGrowingFiles | None:
        """The files of uploads that other processes can read, if the storage has any."""
        found: IGrowingFiles | None = self._store.growing
        return found

    async def receive(
        self,
        chunks: AsyncIterable[bytes],
        *,
        limit: int | None = None,
        expect_size: int | None = None,
        slack: int = 0,
        algorithms: Sequence[str] = (),
        expected: Mapping[str, str] | None = None,
    ) -> BlobInfo:
        """
        Receive a stream of bytes as a blob, which may be smaller than expected by ``slack`` bytes.

        :raises TooLarge, DigestMismatch, StorageFull, StorageFailed: see L{IBlobUpload}
        :raises QuotaExceeded: a quota leaves no room for it
        """
        room = await self.room.begin(expect_size, slack=slack)
        upload = self._store.begin(expect_size, algorithms, limit)
        try:
            async for chunk in chunks:
                await room.add(len(chunk))
                upload.write(chunk)
                await upload.drained()
            info: BlobInfo = await upload.seal(expected)
        except BaseException:
            await upload.abort()
            raise
        self.add_sealed(upload, info)
        return info

    async def receive_part(
        self,
        part: AsyncIterable[bytes],
        form_size: int | None,
        limit: int,
        *,
        algorithms: Sequence[str] = (),
        expected: Mapping[str, str] | None = None,
    ) -> BlobInfo:
        """Receive the file in a form of an announced size, which has more than the file. It raises as ``receive``."""
        size = None if form_size is None else min(form_size, limit)
        return await self.receive(
            part, limit=limit, expect_size=size, slack=FORM_SLACK, algorithms=algorithms, expected=expected
        )

    async def store(self, data: bytes, algorithms: Sequence[str] = ()) -> BlobInfo:
        """Store bytes in memory as a blob."""
        return await self.receive(_single(data), expect_size=len(data), algorithms=algorithms)

    def begin(self, algorithms: Sequence[str], limit: int | None = None, expect_size: int | None = None) -> IBlobUpload:
        """Begin an upload that the caller ends, with ``room`` that the caller has; see L{IBlobStore.begin}."""
        upload: IBlobUpload = self._store.begin(expect_size, algorithms, limit)
        return upload

    def add_sealed(self, upload: IBlobUpload, info: BlobInfo) -> None:
        """Add a blob that such an upload has sealed."""
        self._sealed[info.locator] = upload

    def take_over(self, other: Staged, info: BlobInfo) -> None:
        """Move a sealed blob of the same storage here, to be committed together with others."""
        self._sealed[info.locator] = other._sealed.pop(info.locator)

    async def resume(self, upload_id: str, state: bytes, *, abandoned: bool) -> IBlobUpload:
        """Continue such an upload; see L{IBlobStore.resume}. Call ``adopt`` for the blob that it commits."""
        upload: IBlobUpload = await self._store.resume(upload_id, state, abandoned=abandoned)
        return upload

    def adopt(self, info: BlobInfo) -> None:
        """Add a blob that a resumed upload has committed."""
        self._locators.append(info.locator)

    async def as_file(self, info: BlobInfo) -> int:
        """
        A new descriptor of a staged or stored blob, which the caller closes; not allowed after ``commit_early``.

        :raises PkgrepoError: there is none, see L{IBlob.as_file}
        """
        upload = self._sealed.get(info.locator)
        if upload is not None:
            return int(upload.descriptor())
        descriptor: int = await self._store.open(info.locator).as_file()
        return descriptor

    def content(self, info: BlobInfo) -> int | bytes:
        """The bytes of a sealed blob that is small, or a new descriptor, which the caller closes."""
        upload = self._sealed[info.locator]
        data: bytes | None = upload.data
        return int(upload.descriptor()) if data is None else data

    async def inspect(
        self, pool: Pool, info: BlobInfo, look: Callable[[int | bytes], T], *, alone: bool = False, commit: bool = True
    ) -> T:
        """
        Call ``look`` on a thread with a descriptor of a sealed blob, or with its bytes if it is small.

        The commit starts meanwhile, unless the blob is small and not ``alone``: several small blobs are committed
        together with the fsync calls of one. Without ``commit`` it does not, since the blob may not be published.

        :raises StorageFailed: it cannot be read
        """
        content = self.content(info)
        if commit and (alone or not isinstance(content, bytes)):
            self.commit_early(info)
        if isinstance(content, bytes):
            return await pool(look, content)
        with reading(self._storage):
            return await pool(_look_and_close, content, look)

    def commit_early(self, info: BlobInfo) -> None:
        """Start the commit of a sealed blob that may still be refused, so that ``claim`` waits less."""
        self._committing[info.locator] = Deferred.fromCoroutine(_commit(self._store, [self._sealed[info.locator]]))

    def claim(self, locators: Sequence[str]) -> Claim:
        """
        Hand over blobs to the caller, who must commit or delete them.

        What was reserved is the caller's, too: the command gives it up, so that no byte counts twice.
        """
        self._locators = [each for each in self._locators if each not in locators]
        uploads = {each: upload for each in locators if (upload := self._sealed.pop(each, None)) is not None}
        committing = {
            each: under_way for each in locators if (under_way := self._committing.pop(each, None)) is not None
        }
        waiting = {each: upload for each, upload in uploads.items() if each not in committing}
        return Claim(self._store, locators, waiting, list(committing.values()), self.room.hand_over())

    async def clear(self) -> None:
        """Remove all blobs that were not claimed, and give up the room that was reserved."""
        try:
            await self._clear()
        finally:
            await self.room.release()

    async def _clear(self) -> None:
        sealed, self._sealed = self._sealed, {}
        committing, self._committing = self._committing, {}
        leaving, self._locators = self._locators, []
        for upload in sealed.values():
            await upload.abort()
        for locator, under_way in committing.items():
            try:
                await under_way
            except (CancelledError, PkgrepoError):
                continue  # its commit removed it
            leaving.append(locator)
        await _delete(self._store, leaving)


@define(eq=False)
class Claim:
    """
    Copies for one write command, no longer staged.

    Of those at the ``locators`` some are ``waiting`` for their commit, the commits of some are ``under_way``, and the
    others are durable. ``reservations`` of quotas are for them.
    """

    _store: IBlobStore
    _locators: Sequence[str]
    waiting: dict[str, IBlobUpload]
    under_way: Sequence[Deferred[None]]
    reservations: Sequence[str] = ()

    async def commit(self, *others: Claim) -> None:
        """
        Make them durable, together with those of ``others`` in the same storage.

        :raises StorageFull: or ``StorageFailed``; then all are removed
        """
        claims = (self, *others)
        under_way = [each for claim in claims for each in claim.under_way]
        waiting = [each for claim in claims for each in claim.waiting.values()]
        if waiting:
            under_way.append(Deferred.fromCoroutine(_commit(self._store, waiting)))
        failed: Exception | None = None
        for each in under_way:  # all of them: a copy whose commit runs cannot be deleted
            try:
                await each
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        if failed is not None:
            for claim in claims:
                await claim.delete()
            raise failed

    async def leave_out(self, locators: Iterable[str]) -> None:
        """Remove some copies, which are ``waiting``."""
        for each in locators:
            self._locators = [other for other in self._locators if other != each]
            await self.waiting.pop(each).abort()

    async def delete(self, locators: Collection[str] | None = None) -> None:
        """Remove the copies at these locators, or all."""
        await _delete(self._store, self._locators if locators is None else locators)


async def _single(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _commit(store: IBlobStore, uploads: Sequence[IBlobUpload]) -> None:
    await store.commit_together(uploads)


async def _delete(store: IBlobStore, locators: Collection[str]) -> None:
    """Remove copies that no row names; those that cannot be removed are left to the sweep."""
    for locator in locators:
        try:
            await store.delete(locator)
        except StorageFailed as error:
            log.warn("copy {locator} is left behind: {error}", locator=locator, error=str(error))


def _look_and_close(descriptor: int, look: Callable[[int | bytes], T]) -> T:
    # The thread closes it: it goes on when the client disconnects, and must not read from a descriptor number that was
    # reused for another file.
    try:
        return look(descriptor)
    finally:
        os.close(descriptor)
