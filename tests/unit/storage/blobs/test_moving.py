"""Uploads of a storage that is being moved: which place they are committed in, and what is remembered of them."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_twisted
from twisted.internet import reactor

from pkgrepo.concurrency.pools import Pools
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.moving import MovingBlobStore
from tests.support.inprocess_server import until


@pytest_twisted.async_yield_fixture
async def moving(tmp_path: Path) -> AsyncIterator[MovingBlobStore]:
    """A store of which both places are folders."""
    pools = Pools(reactor)
    pools.start()
    places = [FilesystemBlobStore(tmp_path / name, name="main", pools=pools, low_water=0) for name in ("old", "new")]
    for each in places:
        await each.start()
    yield MovingBlobStore(*places)
    await pools.stop()


async def suspended(store: FilesystemBlobStore) -> tuple[str, bytes]:
    async with store.begin() as upload:
        upload.write(b"begun before the move")
        return upload.id, await upload.suspend()


async def test_resumed_uploads_are_committed_in_the_old_place_and_others_in_the_new_one(
    moving: MovingBlobStore,
) -> None:
    resumed = await moving.resume(*await suspended(moving.old))
    begun = moving.begin()
    begun.write(b"begun after it")
    sealed = [await each.seal() for each in (resumed, begun)]
    await moving.commit_together([resumed, begun])
    for stores, info in zip(((moving.old, moving.new), (moving.new, moving.old)), sealed, strict=True):
        assert [await each.stat(info.locator) is not None for each in stores] == [True, False]
        assert await moving.stat(info.locator) is not None


async def test_nothing_is_remembered_of_resumed_uploads_that_were_given_up(moving: MovingBlobStore) -> None:
    for _ in range(3):
        upload_id, state = await suspended(moving.old)
        again = await moving.resume(upload_id, state)
        assert list(moving._resumed) == [again]
        await (await moving.resume(upload_id, await again.suspend())).abort()
        del again
        # The thread that did the last of it may still hold its arguments.
        await until(lambda: gc.collect() >= 0 and not moving._resumed)
