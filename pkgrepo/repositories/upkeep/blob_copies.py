"""Stores the bytes of a blob again, from a file of the readable layout or from another copy."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from pathlib import Path

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import BlobMissing, PkgrepoError
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.layout.updater import open_writer
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import BlobReference
from pkgrepo.storage.layout_folder import layout_folder_of

PIECE = 1024 * 1024
GENERATIONS = 16  # copies of the same bytes in one storage that are tried

Read = Callable[[int], Awaitable[bytes]]  # the bytes from an offset, empty at the end
Spares = Callable[[], AbstractAsyncContextManager[IBlobStore | None]]  # opens a further store, if there is one


@asynccontextmanager
async def no_spares() -> AsyncIterator[None]:
    """No further store."""
    yield None


async def copy_file(
    pools: Pools, store: IBlobStore, path: Path, sha256: str, size: int, algorithms: Collection[str]
) -> BlobInfo:
    """
    Store a file as a new blob.

    :raises BlobMissing: there is no such file; :raises PkgrepoError: it has other bytes, or cannot be read or stored
    """
    try:
        opened = await pools.disk(path.open, "rb")
    except OSError:
        raise BlobMissing(str(path)) from None
    with opened:
        return await _copy(store, lambda _start: pools.disk(opened.read, PIECE), sha256, size, algorithms)


async def _copy(store: IBlobStore, read: Read, sha256: str, size: int, algorithms: Collection[str]) -> BlobInfo:
    async with store.begin(size, [name for name in algorithms if name != "sha256"]) as upload:
        start = 0
        while chunk := await _read_or_raise(read(start)):
            start += len(chunk)
            upload.write(chunk)
            await upload.drained()
        info: BlobInfo = await upload.commit({"sha256": sha256}, size)
    return info


async def _read_or_raise(reading: Awaitable[bytes]) -> bytes:
    try:
        return await reading
    except OSError as error:
        raise PkgrepoError(f"cannot be read: {reason_of(error)}") from error


class BlobRepair(MaintenanceWork):
    """
    Replaces missing or damaged blobs.

    The bytes are searched in the readable layout, whose file may be a copy or the last link to the bytes, in other
    copies of the storage, in other storages, and in ``spares``. Only bytes with the right digest are used.
    """

    def __init__(self, context: MaintenanceContext, spares: Spares = no_spares) -> None:
        super().__init__(context)
        self._spares = spares

    async def replace(
        self, storage: Storage, store: IBlobStore, info: BlobInfo, users: Collection[BlobReference]
    ) -> bool:
        """Replace a blob that is marked as suspect by a new copy of its bytes. Returns whether any were found."""
        async with aclosing(self._copies(storage, store, info, users)) as copies:
            async for copy in copies:
                now_ms = self._clock.now_ms()
                kept = await self._catalog.write(blobs.claim_blob, storage.id, copy, now_ms)
                if kept.locator != copy.locator:  # an upload of the same bytes was faster
                    await store.delete(copy.locator)
                return True
        return False

    async def _copies(
        self, storage: Storage, store: IBlobStore, info: BlobInfo, users: Collection[BlobReference]
    ) -> AsyncGenerator[BlobInfo, None]:
        await self._registry.refresh()
        layout = layout_folder_of(store)
        for user in users:
            repository = self._registry.find_id(user.repository_id)
            writer = None if repository is None else await open_writer(self._context, repository)
            if layout is not None and writer is not None:
                place = writer.place_of(user.package_key, user.path, info.sha256)
                with suppress(*FAILURES):
                    path = layout.file(place)
                    yield await copy_file(self._pools, store, path, info.sha256, info.size, info.digests)
        async with aclosing(self._copies_in(store, store, info)) as copies:
            async for copy in copies:
                yield copy
        for other in self._registry.storages():
            found = None if other.id == storage.id else await self._catalog.look(blobs.find_blob, other.id, info.sha256)
            if found is not None:
                with suppress(*FAILURES):
                    yield await self._copy_blob(store, await self._stores.of(other), found.locator, info)
        with suppress(*FAILURES):
            async with self._spares() as spare:
                if spare is not None:
                    async with aclosing(self._copies_in(spare, store, info)) as copies:
                        async for copy in copies:
                            yield copy

    async def _copies_in(self, source: IBlobStore, store: IBlobStore, info: BlobInfo) -> AsyncGenerator[BlobInfo, None]:
        """What a ``source`` has of a blob, as new copies in a store."""
        found: Sequence[tuple[str, int, object]] = ()
        with suppress(*FAILURES):
            # In stores that name locators by the digest, those of one digest have this prefix and follow each other.
            found = await source.scan(f"{info.sha256[:2]}/{info.sha256}", GENERATIONS)
        for locator, _, _ in found:
            if info.sha256 in locator and (source is not store or locator != info.locator):
                with suppress(*FAILURES):
                    yield await self._copy_blob(store, source, locator, info)

    async def _copy_blob(self, store: IBlobStore, source: IBlobStore, locator: str, info: BlobInfo) -> BlobInfo:
        blob = source.open(locator)
        return await _copy(store, lambda start: blob.read(start, PIECE), info.sha256, info.size, info.digests)
