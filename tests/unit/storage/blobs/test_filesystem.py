import errno
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Conflict, StorageFailed, StorageFull
from pkgrepo.storage.blobs import durability, filesystem
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore

GIB = 1024**3


@pytest_twisted.async_yield_fixture
async def pools():
    made = Pools(reactor)
    made.start()
    yield made
    await made.stop()


class Disk:
    """What ``os.statvfs`` says of a disk, and how often it was asked."""

    def __init__(self, monkeypatch, total: int, free: int) -> None:
        self.total, self.free, self.asked = total, free, 0
        monkeypatch.setattr(os, "statvfs", self)

    def __call__(self, path: Path) -> os.statvfs_result:
        self.asked += 1
        return os.statvfs_result((4096, 4096, self.total // 4096, 0, self.free // 4096, 0, 0, 0, 0, 255))


@pytest.mark.parametrize(
    ("total", "free", "low_water", "expect_size", "fits"),
    [
        (1000 * GIB, 2 * GIB, None, None, True),
        (1000 * GIB, 2 * GIB, None, GIB, True),
        (1000 * GIB, 2 * GIB, None, GIB + 4096, False),
        (1000 * GIB, GIB - 4096, None, None, False),
        (10 * GIB, GIB // 2, None, None, True),
        (10 * GIB, GIB // 10, None, None, False),
        (10 * GIB, 4096, 0, 4096, True),
        (10 * GIB, 4096, 0, 4097, False),
    ],
)
def test_an_upload_begins_only_above_the_low_water_mark(
    tmp_path, monkeypatch, total, free, low_water, expect_size, fits
):
    Disk(monkeypatch, total, free)
    store = FilesystemBlobStore(tmp_path, name="main", pools=Pools(reactor), low_water=low_water)
    if fits:
        store.begin(expect_size=expect_size)
    else:
        with pytest.raises(StorageFull):
            store.begin(expect_size=expect_size)


def test_the_free_space_is_asked_for_once_a_second(tmp_path, monkeypatch):
    disk, now = Disk(monkeypatch, 10 * GIB, 5 * GIB), [100.0]
    store = FilesystemBlobStore(tmp_path, name="main", pools=Pools(reactor), clock=lambda: now[0])
    assert store.capacity() == store.capacity() == (5 * GIB, 10 * GIB)
    assert disk.asked == 1
    disk.free = GIB
    now[0] += 1
    assert store.capacity() == (GIB, 10 * GIB)
    assert disk.asked == 2


async def test_start_sets_the_id_and_refuses_another_one(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, uid="one")
    await store.start()
    again = FilesystemBlobStore(tmp_path, name="main", pools=pools)
    await again.start()
    assert again.uid == "one"
    with pytest.raises(Conflict):
        await FilesystemBlobStore(tmp_path, name="main", pools=pools, uid="two").start()


@pytest.mark.parametrize("by_name", [False, True])
async def test_a_store_whose_copies_are_found_by_name_never_has_a_name_before_its_bytes(
    tmp_path, pools, monkeypatch, by_name
):
    monkeypatch.setattr(durability, "has_quick_syncfs", lambda _: True)
    monkeypatch.setattr(durability, "is_little_dirty", lambda: True)
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0, found_by_name=by_name)
    await store.start()
    assert store._durability.prefers_whole() is not by_name


async def test_a_root_that_cannot_be_made_is_a_failed_storage(tmp_path, pools):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed):
        await FilesystemBlobStore(tmp_path / "file" / "store", name="main", pools=pools).start()


async def test_a_blob_is_a_read_only_file_under_its_locator(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    info = await upload.commit()
    path = tmp_path / "blobs" / info.locator
    assert path.read_bytes() == b"hello"
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o444
    assert found.st_nlink == 1


async def test_a_symbolic_link_is_neither_opened_nor_resumed(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path / "store", name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    state = await upload.suspend()
    data = tmp_path / "store" / "uploads" / upload.id / "data"
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(filesystem.BlobMissing):
        await store.resume(upload.id, state)
    locator = "ab/" + "ab" * 32 + "." + "0" * 16
    (tmp_path / "store" / "blobs" / locator).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(filesystem.BlobMissing):
        store.open(locator)


async def test_a_descriptor_is_the_callers_and_outlives_the_blob(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    blob = store.open((await upload.commit()).locator)
    fd = blob.descriptor()
    own = blob._fd
    del blob
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(own)
    assert os.pread(fd, 10, 0) == b"hello"
    os.close(fd)


async def test_the_number_of_cached_digesters_is_limited(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0, cached_digesters=3)
    await store.start()
    suspended = []
    for n in range(6):
        upload = store.begin()
        upload.write(b"%d" % n)
        suspended.append((upload.id, await upload.suspend()))
    assert list(store._digesters) == [upload_id for upload_id, _ in suspended[3:]]
    assert not store._active
    for n, (upload_id, state) in enumerate(suspended):
        resumed = await store.resume(upload_id, state)
        resumed.write(b"!")
        assert await store.open((await resumed.commit()).locator).read(0, 9) == b"%d!" % n


async def test_an_upload_that_stays_in_its_process_is_not_read_again(tmp_path, pools, monkeypatch):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    state = await upload.suspend()
    resumed = await store.resume(upload.id, state)
    monkeypatch.setattr(os, "pread", None)
    resumed.write(b" world")
    assert (await resumed.commit()).size == 11


async def test_an_upload_is_committed_where_a_file_has_one_name_only(tmp_path, pools, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError(errno.EPERM, "no second names")

    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    resumed = await store.resume(upload.id, await upload.suspend())
    resumed.keep_state()
    monkeypatch.setattr(os, "link", refuse)
    info = await resumed.commit()
    await resumed.forget()
    assert await store.open(info.locator).read(0, 9) == b"hello"
    assert list(store.paths.uploads.iterdir()) == []


async def test_an_upload_that_moved_is_not_read_again_without_further_bytes(tmp_path, pools, monkeypatch):
    stores = [FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0) for _ in range(2)]
    for store in stores:
        await store.start()
    upload = stores[0].begin()
    upload.write(b"hello")
    state = await upload.suspend()
    resumed = await stores[1].resume(upload.id, state)
    monkeypatch.setattr(os, "pread", None)
    assert (await resumed.commit()).size == 5


@pytest.mark.parametrize("ends", ["abort", "commit"])
async def test_a_process_that_wakes_up_changes_nothing_of_an_upload_that_was_taken_over(tmp_path, pools, ends):
    stores = [FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0) for _ in range(2)]
    for store in stores:
        await store.start()
    upload = stores[0].begin()
    upload.write(b"hello")
    state = await upload.suspend()
    stuck = await stores[0].resume(upload.id, state)
    taken = await stores[1].resume(upload.id, state, abandoned=True)
    taken.write(b" world")
    stuck.write(b" wrong")
    if ends == "commit":
        with pytest.raises(StorageFailed):
            await stuck.commit()
    await stuck.abort()
    later = await taken.suspend()
    info = await (await stores[0].resume(upload.id, later)).commit()
    assert await stores[0].open(info.locator).read(0, 99) == b"hello world"
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.parametrize("begun", [b"", b"hello"], ids=["empty", "begun"])
@pytest.mark.parametrize("ends", ["suspend", "commit"])
async def test_a_process_that_opens_an_upload_late_changes_nothing_of_it(tmp_path, pools, begun, ends):
    stores = [FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0) for _ in range(2)]
    for store in stores:
        await store.start()
    upload = stores[0].begin()
    upload.write(begun)
    state = await upload.suspend()
    taken = await stores[1].resume(upload.id, state, abandoned=True)
    taken.write(b" world")
    later = await taken.suspend()
    stuck = await stores[0].resume(upload.id, state)
    stuck.write(b" wrong")
    with suppress(StorageFailed):  # of bytes that were never named there is a blob, which no row will name
        await getattr(stuck, ends)()
    info = await (await stores[1].resume(upload.id, later)).commit()
    assert await stores[0].open(info.locator).read(0, 99) == begun + b" world"
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_an_upload_is_taken_over_again_after_the_one_that_took_it_over_was_lost(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    state = await upload.suspend()
    lost = await store.resume(upload.id, state, abandoned=True)
    lost.write(b" lost")
    taken = await store.resume(upload.id, state, abandoned=True)
    taken.write(b" world")
    info = await taken.commit()
    assert await store.open(info.locator).read(0, 99) == b"hello world"
    await lost.abort()
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_an_upload_whose_file_lost_bytes_is_gone(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await store.start()
    upload = store.begin()
    upload.write(b"hello")
    state = await upload.suspend()
    os.truncate(tmp_path / "uploads" / upload.id / "data", 4)
    with pytest.raises(filesystem.BlobMissing):
        await store.resume(upload.id, state)
    assert not store._active


async def test_an_error_of_statvfs_is_a_failed_storage(tmp_path, monkeypatch):
    store = FilesystemBlobStore(tmp_path / "nowhere", name="main", pools=Pools(reactor))
    with pytest.raises(StorageFailed):
        store.begin()


async def test_an_empty_folder_of_an_upload_is_swept_and_foreign_files_stay(tmp_path, pools):
    store = FilesystemBlobStore(tmp_path, name="main", pools=pools)
    await store.start()
    (tmp_path / "uploads" / ("a" * 32)).mkdir()
    (tmp_path / "uploads" / "notes.txt").write_text("of the administrator")
    assert await store.sweep_uploads(datetime(2200, 1, 1, tzinfo=UTC), ()) == 1
    assert [each.name for each in (tmp_path / "uploads").iterdir()] == ["notes.txt"]


@pytest_twisted.ensureDeferred
async def test_the_file_system_that_is_synced_is_that_of_the_uploads(tmp_path, monkeypatch, pools):
    elsewhere, asked = tmp_path / "other disk", []
    for name in ("blobs", "uploads"):
        (elsewhere / name).mkdir(parents=True)
        (tmp_path / "store" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "store" / name).symlink_to(elsewhere / name)
    monkeypatch.setattr(durability, "has_quick_syncfs", lambda folder: not asked.append(folder.resolve()))
    store = FilesystemBlobStore(tmp_path / "store", name="main", pools=pools)
    await store.start(create=True)
    assert asked == [elsewhere / "uploads"]
