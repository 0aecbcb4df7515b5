"""System calls of a blob store that fail with EIO or ENOSPC."""

import errno
import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
import pytest_twisted
from twisted.internet.defer import ensureDeferred

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.storage.blobs import durability
from tests.support.blob_checks import assert_promises_kept, files_below, read_promises, start_child
from tests.support.blob_stores import FilesystemCase, open_descriptors

pytestmark = pytest.mark.faults

FUTURE = datetime(2200, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["unnamed", "named"])
def case(request, tmp_path):
    return FilesystemCase(tmp_path / "store", unnamed=request.param == "unnamed")


@pytest_twisted.async_yield_fixture
async def store(case):
    started = await case.start()
    started._durability._whole = None  # each file is synced by itself
    yield started
    await case.stop()


class Failing:
    """Replaces a function of ``os``: raises ``code`` from call number ``first`` on, until ``mend`` is called."""

    def __init__(self, monkeypatch, name: str, code: int, first: int = 1) -> None:
        self.real, self.code, self.first, self.calls = getattr(os, name), code, first, 0
        monkeypatch.setattr(os, name, self)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.first <= self.calls:
            raise OSError(self.code, os.strerror(self.code))
        return self.real(*args, **kwargs)

    def mend(self) -> None:
        self.first = 10**9


async def assert_clean(case, store) -> None:
    assert files_below(case.root / "uploads") == []
    assert files_below(case.root / "blobs") == []
    assert await store.sweep_uploads(FUTURE, ()) == 0
    assert open_descriptors() == set()


@pytest.mark.parametrize("size", [10, 900_000])
@pytest.mark.parametrize("call", ["fdatasync", "fsync", "fchmod", "pwrite"])
@pytest.mark.parametrize(("code", "error"), [(errno.EIO, StorageFailed), (errno.ENOSPC, StorageFull)])
async def test_a_failing_call_fails_the_commit_and_leaves_nothing(case, store, monkeypatch, size, call, code, error):
    failing = Failing(monkeypatch, call, code)
    store.paths.exact_modes = False  # as with a umask, so that modes are set
    upload = store.begin()
    upload.write(bytes(size))
    with pytest.raises(error):
        await upload.commit()
    assert failing.calls >= 1
    await assert_clean(case, store)
    failing.mend()
    async with store.begin() as upload:
        upload.write(bytes(size))
        info = await upload.commit()
    assert (await store.stat(info.locator))[0] == size


@pytest.mark.parametrize("call", ["fdatasync", "fsync", "fchmod", "pwrite"])
@pytest.mark.parametrize("first", [1, 2])
async def test_one_failing_call_fails_all_that_are_committed_together(case, store, monkeypatch, call, first):
    failing = Failing(monkeypatch, call, errno.EIO, first)
    store.paths.exact_modes = False
    uploads = await sealed(store, 3)
    with pytest.raises(StorageFailed):
        await store.commit_together(uploads)
    assert failing.calls == first
    await assert_clean(case, store)


async def sealed(store, count: int):
    """Small uploads with different bytes."""
    uploads = [store.begin() for _ in range(count)]
    for number, upload in enumerate(uploads):
        upload.write(bytes([number]) * 1000)
        await upload.seal()
    return uploads


async def test_a_failing_syncfs_fails_all_commits_that_waited_for_it(case, store, monkeypatch):
    calls = []

    def fail(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "bad disk")

    store._durability._whole = case.root
    monkeypatch.setattr(durability, "is_little_dirty", lambda: True)
    monkeypatch.setattr(durability, "sync_file_system", fail)
    uploads = await sealed(store, 12)
    commits = [ensureDeferred(store.commit_together(uploads[at : at + 4])) for at in (0, 4, 8)]
    for commit in commits:
        with pytest.raises(StorageFailed):
            await commit
    assert len(calls) == 2, "the first one was alone, the others waited for it"
    await assert_clean(case, store)


async def test_a_failed_fsync_is_not_retried(case, store, monkeypatch):
    failing = Failing(monkeypatch, "fdatasync", errno.EIO)
    upload = store.begin()
    upload.write(b"x")
    with pytest.raises(StorageFailed):
        await upload.commit()
    with pytest.raises(RuntimeError):
        await upload.commit()
    assert failing.calls == 1


@pytest.mark.parametrize("size", [10, 900_000])
@pytest.mark.parametrize("call", ["fdatasync", "fsync", "pwrite"])
async def test_a_failing_suspend_is_an_error_and_leaves_nothing(case, store, monkeypatch, call, size):
    Failing(monkeypatch, call, errno.EIO)
    upload = store.begin()
    upload.write(bytes(size))
    with pytest.raises(StorageFailed):
        await upload.suspend()
    await assert_clean(case, store)


async def test_drained_raises_on_a_full_disk_and_no_more_memory_is_used(case, store, monkeypatch):
    Failing(monkeypatch, "pwrite", errno.ENOSPC, first=3)
    piece = bytes(300_000)
    async with store.begin() as upload:

        async def write_for_ever():
            while True:
                upload.write(piece)
                await upload.drained()

        with pytest.raises(StorageFull):
            await write_for_ever()
        buffered = upload._slices.pressure.buffered
        upload.write(piece)
        assert upload._slices.pressure.buffered == buffered
        with pytest.raises(StorageFull):
            await upload.commit()
    await assert_clean(case, store)


async def test_a_full_disk_stops_the_producer(case, store, monkeypatch):
    class Producer:
        stopped = False

        def pauseProducing(self):
            pass

        def resumeProducing(self):
            pass

        def stopProducing(self):
            self.stopped = True

    Failing(monkeypatch, "pwrite", errno.EDQUOT)
    upload, producer = store.begin(), Producer()
    upload.registerProducer(producer, True)
    upload.write(bytes(3_000_000))
    with pytest.raises(StorageFull):
        await upload.drained()
    assert producer.stopped
    late = Producer()
    upload.registerProducer(late, True)
    assert late.stopped
    await upload.abort()
    await assert_clean(case, store)


async def test_concurrent_commits_that_share_a_failed_directory_fsync_all_fail(case, store, monkeypatch):
    failing = Failing(monkeypatch, "fsync", errno.EIO)
    uploads = [store.begin() for _ in range(6)]
    for upload in uploads:
        upload.write(b"same directory")
    for commit in [upload.commit() for upload in uploads]:
        with pytest.raises(StorageFailed):
            await commit
    assert failing.calls
    await assert_clean(case, store)


async def test_a_read_error_is_reported_as_a_failed_storage_not_as_a_missing_blob(case, store, monkeypatch):
    async with store.begin() as upload:
        upload.write(bytes(900_000))
        info = await upload.commit()
    blob = store.open(info.locator)
    Failing(monkeypatch, "pread", errno.EIO)
    Failing(monkeypatch, "preadv", errno.EIO)
    with pytest.raises(StorageFailed):
        await blob.read(0, 100)
    Failing(monkeypatch, "open", errno.EIO)
    with pytest.raises(StorageFailed):
        store.open(info.locator)


async def test_a_truncated_blob_is_never_delivered_as_complete(case, store):
    async with store.begin() as upload:
        upload.write(bytes(900_000))
        info = await upload.commit()
    blob = store.open(info.locator)
    os.truncate(store.paths.blob(info.locator), 500_000)
    with pytest.raises(StorageFailed):
        await blob.read(0, 900_000)

    class Consumer:
        taken = 0

        def registerProducer(self, producer, streaming):
            pass

        def unregisterProducer(self):
            pass

        def write(self, data):
            self.taken += len(data)

    consumer = Consumer()
    with pytest.raises(StorageFailed):
        await blob.deliver(consumer, 0, 900_000)
    assert consumer.taken == 500_000


@pytest.mark.parametrize("damage", ["changed", "shorter"])
async def test_a_suspended_file_that_was_damaged_is_not_committed(case, store, damage):
    upload = store.begin()
    upload.write(bytes(900_000))
    state = await upload.suspend()
    resumed = await (await case.another()).resume(upload.id, state)
    data = case.root / "uploads" / upload.id / "data"
    if damage == "changed":
        with data.open("r+b") as file:
            file.seek(4711)
            file.write(b"x")
    else:
        os.truncate(data, 1000)
    resumed.write(b"tail")
    with pytest.raises(StorageFailed):
        await resumed.commit()
    await assert_clean(case, store)


def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="strace is not installed or may not trace here")
@pytest.mark.parametrize(
    "fault", ["fdatasync:error=EIO:when=3+5", "pwrite64:error=ENOSPC:when=4+6", "linkat:error=EIO"]
)
async def test_system_call_failures_lose_no_acknowledged_blob(case, store, fault):
    call = fault.partition(":")[0]
    prefix = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={fault}"]
    child = start_child(case.root, "unnamed" if case.unnamed else "named", "40", prefix=prefix)
    out, err = child.communicate()
    assert child.returncode == 0, err
    promises = read_promises(out.splitlines(keepends=True))
    promised = sum("error" not in promise for promise in promises) - 1
    if call != "linkat":  # when linkat fails, the store uses named files instead, and no upload fails
        assert sum("error" in promise for promise in promises) > 0
    assert len(files_below(case.root / "blobs")) + len(files_below(case.root / "uploads")) == promised
    await assert_promises_kept(store, promises)
    assert files_below(case.root / "uploads") == []
