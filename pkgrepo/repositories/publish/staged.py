"""
Blobs between their arrival and the catalog.

=========  ==================================================================  ======================================
state      what is true                                                        left by
=========  ==================================================================  ======================================
sealed     the bytes are here; a crash leaves nothing of them                  ``commit_early``, ``claim``, ``clear``
hastened   they are being made durable, while a format looks into them         ``claim``, ``clear``
claimed    they belong to one write command, which commits or deletes them     ``Claim.commit``, ``Claim.delete``
=========  ==================================================================  ======================================
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from pkgrepo.errors import Invalid, PkgrepoError, StorageFailed
from pkgrepo.interfaces import IBlob, IBlobStore, IBlobUpload
from pkgrepo.model import BlobInfo
from pkgrepo.storage.pools import Pool

log = Logger()

T = TypeVar("T")


class Staged:
    """
    Blobs that are not published yet; what is not published is removed again.

    Those that came in this request are sealed, and made durable together when they are published.
    """

    def __init__(self, store: IBlobStore) -> None:
        self._store = store
        self._sealed: dict[str, IBlobUpload] = {}
        self._committing: dict[str, Deferred[None]] = {}
        self._locators: list[str] = []

    async def receive(
        self,
        chunks: AsyncIterable[bytes],
        *,
        limit: int | None = None,
        expect_size: int | None = None,
        algorithms: Sequence[str] = (),
        expected: Mapping[str, str] | None = None,
    ) -> BlobInfo:
        """
        Take a stream of bytes.

        :raises TooLarge, DigestMismatch, StorageFull, StorageFailed: see L{IBlobUpload}
        """
        upload = self._store.begin(expect_size, algorithms, limit)
        try:
            async for chunk in chunks:
                upload.write(chunk)
                await upload.drained()
            return await self._seal(upload, expected)
        except BaseException:
            await upload.abort()
            raise

    async def store(self, data: bytes, algorithms: Sequence[str] = ()) -> BlobInfo:
        """Take bytes that are already in memory."""
        upload = self._store.begin(len(data), algorithms)
        try:
            upload.write(data)
            await upload.drained()
            return await self._seal(upload, None)
        except BaseException:
            await upload.abort()
            raise

    def begin(self, algorithms: Sequence[str], limit: int) -> IBlobUpload:
        """An upload that goes on in a later request; see L{IBlobStore.begin}."""
        upload: IBlobUpload = self._store.begin(None, algorithms, limit)
        return upload

    async def resume(self, upload_id: str, state: bytes) -> IBlobUpload:
        """The same upload in that request; see L{IBlobStore.resume}. What it commits is to be adopted."""
        upload: IBlobUpload = await self._store.resume(upload_id, state)
        return upload

    def adopt(self, info: BlobInfo) -> None:
        """Take charge of a blob that a resumed upload has committed."""
        self._locators.append(info.locator)

    def open(self, info: BlobInfo) -> IBlob | IBlobUpload:
        """A staged blob, to take a descriptor of it; not once it is hastened."""
        return self._sealed.get(info.locator) or self._store.open(info.locator)

    async def inspect(self, pool: Pool, info: BlobInfo, look: Callable[[int | bytes], T], *, alone: bool = False) -> T:
        """
        What a format finds in a sealed blob, given as a descriptor or, when they are few, as its bytes.

        Meanwhile it is hastened, unless it is small and others will come with it: the disk takes several small ones
        at the price of one.

        :raises Invalid: this storage has no files to look into
        """
        upload = self._sealed[info.locator]
        data: bytes | None = upload.data
        descriptor = upload.descriptor() if data is None else None
        if alone or data is None:
            self.commit_early(info)
        if data is not None:
            return await pool(look, data)
        if descriptor is None:
            raise Invalid("this storage cannot look into uploaded files")
        return await pool(_look_and_close, descriptor, look)

    def commit_early(self, info: BlobInfo) -> None:
        """Begin to make a sealed blob durable, although it may still be refused; ``claim`` then waits less."""
        self._committing[info.locator] = Deferred.fromCoroutine(_commit(self._store, [self._sealed[info.locator]]))

    def claim(self, locators: Sequence[str]) -> Claim:
        """Let go of blobs, which are the taker's business from here on."""
        self._locators = [each for each in self._locators if each not in locators]
        uploads = {each: upload for each in locators if (upload := self._sealed.pop(each, None)) is not None}
        hastened = {each: under_way for each in locators if (under_way := self._committing.pop(each, None)) is not None}
        waiting = [upload for each, upload in uploads.items() if each not in hastened]
        return Claim(self._store, locators, waiting, list(hastened.values()))

    async def clear(self) -> None:
        """Remove what was not claimed."""
        sealed, self._sealed = self._sealed, {}
        hastened, self._committing = self._committing, {}
        leaving, self._locators = self._locators, []
        for upload in sealed.values():
            await upload.abort()
        for locator, under_way in hastened.items():
            try:
                await under_way
            except (CancelledError, PkgrepoError):
                continue  # it left nothing
            leaving.append(locator)
        await _delete(self._store, leaving)

    async def _seal(self, upload: IBlobUpload, expected: Mapping[str, str] | None) -> BlobInfo:
        info: BlobInfo = await upload.seal(expected)
        self._sealed[info.locator] = upload
        return info


class Claim:
    """
    Copies that one command is to take into the catalog; whatever becomes of it, they are staged no more.

    Of those at the ``locators`` some are ``waiting`` to be committed, some are ``under_way``, and the others are
    durable.
    """

    def __init__(
        self,
        store: IBlobStore,
        locators: Sequence[str],
        waiting: Sequence[IBlobUpload],
        under_way: Sequence[Deferred[None]],
    ) -> None:
        self._store = store
        self._locators = locators
        self._waiting = waiting
        self._under_way = under_way

    async def commit(self) -> None:
        """Make them durable. :raises StorageFull: or ``StorageFailed``, and nothing is left of any"""
        under_way = list(self._under_way)
        if self._waiting:
            under_way.append(Deferred.fromCoroutine(_commit(self._store, self._waiting)))
        failed: Exception | None = None
        for each in under_way:  # to the last one: what is still being written cannot be deleted
            try:
                await each
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        if failed is not None:
            await self.delete()
            raise failed

    async def delete(self, locators: Collection[str] | None = None) -> None:
        """Remove those of them that nothing names: all, unless it is said which."""
        await _delete(self._store, self._locators if locators is None else locators)


async def _commit(store: IBlobStore, uploads: Sequence[IBlobUpload]) -> None:
    await store.commit_together(uploads)


async def _delete(store: IBlobStore, locators: Collection[str]) -> None:
    """Remove copies that no row names; what cannot be removed now is left to the sweep."""
    for locator in locators:
        try:
            await store.delete(locator)
        except StorageFailed as error:
            log.warn("copy {locator} is left behind: {error}", locator=locator, error=str(error))


def _look_and_close(descriptor: int, look: Callable[[int | bytes], T]) -> T:
    # Closed by the thread itself: when the client leaves, the thread goes on, and must not read from a number that
    # meanwhile stands for another file.
    try:
        return look(descriptor)
    finally:
        os.close(descriptor)
