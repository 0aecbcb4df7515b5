"""Uploads aborted during disk calls, and the order in which files and names become durable."""

import errno
import os
import threading
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import StorageFailed
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from tests.support.blob_checks import files_below
from tests.support.socket_server import turn
from tests.support.timeouts import TIMEOUT_S


class Recorder(Durability):
    """Notes what is made durable and which names are there then; ``hold`` stops a thread in the next fsync of data."""

    def __init__(self, root: Path) -> None:
        super().__init__("never")
        self.root = root
        self.has_quick_syncfs = False
        self.steps: list[tuple[str, str, int]] = []
        self.reached, self.released = threading.Event(), threading.Event()
        self.released.set()

    def hold(self) -> None:
        self.released.clear()

    def sync_data(self, fd: int) -> None:
        self._note("data", "")
        self.reached.set()
        assert self.released.wait(TIMEOUT_S)

    def sync_directory(self, path: Path) -> None:
        self._note("shared", path.relative_to(self.root).as_posix())

    def sync_own_directory(self, path: Path) -> None:
        self._note("own", path.parent.relative_to(self.root).as_posix())

    def prefers_whole(self) -> bool:
        return self.has_quick_syncfs

    def open_whole(self) -> int | None:
        return os.open(self.root, os.O_RDONLY)

    def sync_whole(self, fd: int) -> None:
        self._note("whole", "")
        self.reached.set()
        assert self.released.wait(TIMEOUT_S)

    def _note(self, kind: str, path: str) -> None:
        self.steps.append((kind, path, len(files_below(self.root / "uploads") + files_below(self.root / "blobs"))))


@pytest.fixture(params=["unnamed", "named"])
def kind(request):
    return request.param


@pytest_twisted.async_yield_fixture
async def store(tmp_path, kind):
    pools = Pools(reactor)
    pools.start()
    found = FilesystemBlobStore(tmp_path, name="main", pools=pools, low_water=0)
    await found.start()
    found._unnamed = found._unnamed and kind == "unnamed"
    found._durability = Recorder(tmp_path)
    yield found
    found._durability.released.set()
    await pools.stop()


async def held(store, work):
    """The work, once a thread is in its fsync."""
    store._durability.hold()
    working = Deferred.fromCoroutine(work)
    while not store._durability.reached.is_set():
        assert not working.called, "it did not sync its data"
        await turn()
    return working


@pytest.mark.parametrize("size", [10, 900_000])
@pytest.mark.parametrize("last", ["commit", "suspend"])
async def test_an_upload_that_is_aborted_during_the_fsync_was_not_stored(store, tmp_path, last, size):
    upload = store.begin()
    upload.write(bytes(size))
    ending = await held(store, getattr(upload, last)())
    aborting = Deferred.fromCoroutine(upload.abort())
    store._durability.released.set()
    with pytest.raises(CancelledError):
        await ending
    await aborting
    assert files_below(tmp_path / "uploads") == files_below(tmp_path / "blobs") == []


async def test_an_upload_that_is_aborted_during_the_fsync_aborts_all_of_the_commit(store, tmp_path):
    uploads = await sealed(store, 3)
    ending = await held(store, store.commit_together(uploads))
    aborting = Deferred.fromCoroutine(uploads[1].abort())
    store._durability.released.set()
    with pytest.raises(CancelledError):
        await ending
    await aborting
    assert files_below(tmp_path / "uploads") == files_below(tmp_path / "blobs") == []


async def test_a_suspended_upload_is_durable_with_its_names(store, kind):
    upload = store.begin()
    upload.write(b"first")
    state = await upload.suspend()
    steps = store._durability.steps
    named_before = 1 if kind == "named" else 0
    assert steps == [("data", "", named_before), ("own", "uploads", 1), ("shared", "uploads", 1)]
    steps.clear()
    upload = await store.resume(upload.id, state)
    upload.write(b"second")
    await upload.suspend()
    assert steps == [("data", "", 1)]  # its names are


async def test_a_blob_is_durable_before_its_name_and_its_name_before_the_answer(store, kind):
    upload = store.begin()
    upload.write(b"data")
    info = await upload.commit()
    folder = f"blobs/{info.sha256[:2]}"
    assert store._durability.steps == [("data", "", 1 if kind == "named" else 0), ("shared", folder, 1)]


async def sealed(store, count):
    uploads = [store.begin() for _ in range(count)]
    for number, upload in enumerate(uploads):
        upload.write(bytes([number]) * 1000)
        await upload.seal()
    return uploads


@pytest.mark.parametrize("count", [1, 2])
async def test_small_files_wait_once_for_their_file_system_when_all_have_their_names(store, count):
    store._durability.has_quick_syncfs = True
    await store.commit_together(await sealed(store, count))
    assert store._durability.steps == [("whole", "", count)]


async def test_where_each_file_is_synced_commits_do_not_wait_for_each_other(store):
    first, second = await sealed(store, 2)
    begun = await held(store, first.commit())
    store._durability.reached.clear()
    other = Deferred.fromCoroutine(second.commit())
    while not store._durability.reached.is_set():
        await turn()
    store._durability.released.set()
    await begun
    await other


async def test_small_commits_that_arrive_during_another_one_share_the_next(store, tmp_path, kind):
    store._durability.has_quick_syncfs = True
    first, *others, aborted = await sealed(store, 6)
    begun = await held(store, first.commit())
    later = [Deferred.fromCoroutine(each.commit()) for each in (*others, aborted)]
    aborting = Deferred.fromCoroutine(aborted.abort())
    store._durability.released.set()
    infos = [await begun, *[await each for each in later[:-1]]]
    with pytest.raises(CancelledError):
        await later[-1]
    await aborting
    steps = [kind for kind, _, _ in store._durability.steps]
    assert steps == ["whole", "whole"]
    assert files_below(tmp_path / "uploads") == []
    assert sorted(files_below(tmp_path / "blobs")) == sorted(str(store.paths.blob(each.locator)) for each in infos)


async def test_a_commit_that_fails_does_not_fail_those_beside_it(store, tmp_path, monkeypatch):
    store._durability.has_quick_syncfs = True
    first, broken, *others = await sealed(store, 4)
    begun = await held(store, first.commit())

    def fail(_locator):
        raise OSError(errno.EIO, "bad disk")

    monkeypatch.setattr(broken._file, "link", fail)
    later = [Deferred.fromCoroutine(each.commit()) for each in (broken, *others)]
    store._durability.released.set()
    infos = [await begun]
    with pytest.raises(StorageFailed):
        await later[0]
    infos += [await each for each in later[1:]]
    assert files_below(tmp_path / "uploads") == []
    assert sorted(files_below(tmp_path / "blobs")) == sorted(str(store.paths.blob(each.locator)) for each in infos)


async def test_all_files_of_a_commit_are_durable_before_the_first_is_named(store):
    uploads = await sealed(store, 3)
    await store.commit_together(uploads)
    steps = store._durability.steps
    assert [kind for kind, _, _ in steps] == ["data"] * 3 + ["shared"] * 3
    assert {path for _, path, _ in steps[3:]} == {f"blobs/{each._sealed.sha256[:2]}" for each in uploads}
