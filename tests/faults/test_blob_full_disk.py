"""Blob stores on full file systems, and on one whose power is cut."""

import os
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
import pytest_twisted
from twisted.internet.defer import ensureDeferred

from pkgrepo.errors import StorageFull
from pkgrepo.storage.blobs import durability
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.slice_writer import SLICE
from tests.support.blob_checks import FUTURE, assert_promises_kept, assert_visible_is_whole, files_below
from tests.support.blob_stores import FilesystemCase
from tests.support.power_cuts import ext4_disk, mount

pytestmark = pytest.mark.faults

MIB = 1024 * 1024


@pytest.fixture(params=["unnamed", "named"])
def case(request, tmp_path):
    """A store on a file system of 4 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=4m", "pkgrepo-test", str(place))
    yield FilesystemCase(place / "store", unnamed=request.param == "unnamed")
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest_twisted.async_yield_fixture
async def store(case):
    yield await case.start()
    await case.stop()


async def put(store, body: bytes, **how):
    async with store.begin(**how) as upload:
        for start in range(0, len(body), 100_000):
            upload.write(body[start : start + 100_000])
            await upload.drained()
        return await upload.commit()


async def test_a_body_that_does_not_fit_is_refused_and_its_space_is_freed(case, store):
    with pytest.raises(StorageFull):
        await put(store, bytes(6 * MIB))
    assert files_below(case.root / "uploads") == files_below(case.root / "blobs") == []
    info = await put(store, bytes(2 * MIB))
    with pytest.raises(StorageFull):
        await put(store, bytes(3 * MIB))
    assert (await store.stat(info.locator))[0] == 2 * MIB
    await store.delete(info.locator)
    await put(store, bytes(3 * MIB))


async def test_a_body_announced_too_big_is_refused_before_its_first_byte(store):
    with pytest.raises(StorageFull):
        store.begin(expect_size=6 * MIB)


async def test_announced_space_is_reserved_so_that_the_second_upload_fails_early(case, store):
    first = store.begin(expect_size=3 * MIB)
    first.write(bytes(SLICE))
    await first._queue.run(int)  # its file exists, with the announced space reserved
    second = store.begin(expect_size=3 * MIB)
    second.write(bytes(SLICE))
    with pytest.raises(StorageFull):
        await second.commit()
    first.write(bytes(3 * MIB - SLICE))
    assert (await first.commit()).size == 3 * MIB


async def test_below_the_low_water_mark_uploads_are_refused_and_reads_work(case, store):
    info = await put(store, b"hello")
    low = FilesystemBlobStore(case.root, name="main", pools=case.pools, low_water=5 * MIB)
    await low.start()
    with pytest.raises(StorageFull):
        low.begin()
    assert await low.open(info.locator).read(0, 5) == b"hello"


@pytest.fixture
def disk(tmp_path):
    """An ext4 file system; ``cut()`` simulates a power cut, and mounts it again."""
    with ext4_disk(tmp_path, 96 * MIB) as found:
        yield found


@pytest.mark.parametrize("kind", ["unnamed", "named"])
async def test_a_power_cut_loses_no_acknowledged_blob(disk, kind):
    place, cut = disk
    case = FilesystemCase(Path(place) / "store", unnamed=kind == "unnamed")
    store = await case.start()
    promises, unfinished = [], []
    for n, size in enumerate([10, 20_000, 300_000, 1_500_000] * 5):
        upload = store.begin(expect_size=size)
        upload.write(os.urandom(size))
        if n % 3 == 0:
            info = await upload.commit()
            promises.append({"locator": info.locator, "sha256": info.sha256, "size": size})
        elif n % 3 == 1:
            state = await upload.suspend()
            promises.append({"upload": upload.id, "state": state.decode(), "size": size})
        else:
            unfinished.append(upload)
    for upload in unfinished:
        await upload.drained()
        upload._file.release()
    cut()
    store = await case.another()
    await store.sweep_uploads(FUTURE, {promise["upload"] for promise in promises if "upload" in promise})
    assert await assert_visible_is_whole(store) == sum("locator" in promise for promise in promises)
    await assert_promises_kept(store, promises)
    assert files_below(case.root / "uploads") == []
    await case.stop()


async def test_a_power_cut_loses_none_of_many_that_were_committed_at_once(disk, monkeypatch):
    place, cut = disk
    monkeypatch.setattr(durability, "is_little_dirty", lambda: True)  # whatever else this machine does
    syncs = Mock(wraps=durability.sync_file_system)
    monkeypatch.setattr(durability, "sync_file_system", syncs)
    case = FilesystemCase(Path(place) / "store")
    store = await case.start()
    bodies = [os.urandom(9_000) for _ in range(12)]
    puts = [ensureDeferred(put(store, body)) for body in bodies]
    infos = [await each for each in puts]
    assert syncs.called
    cut()
    store = await case.another()
    promises = [{"locator": each.locator, "sha256": each.sha256, "size": each.size} for each in infos]
    await assert_promises_kept(store, promises)
    assert await assert_visible_is_whole(store) == len(bodies)
    await case.stop()


async def test_without_fsync_a_power_cut_loses_blobs(disk):
    """The control experiment: the test above passes because of fsync, not because of the file system."""
    place, cut = disk
    case = FilesystemCase(Path(place) / "store")
    await case.start()
    store = FilesystemBlobStore(case.root, name="main", pools=case.pools, low_water=0, fsync="never")
    await store.start()
    info = await put(store, os.urandom(300_000))
    cut()
    found = await (await case.another()).stat(info.locator)
    assert found is None or found[0] < 300_000
    await case.stop()
