import errno
import gzip
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.storage.blobs.durability import Durability, has_quick_syncfs, memory_file, reading, storage_error
from tests.support.timeouts import TIMEOUT_S


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EIO, StorageFailed),
        (errno.EROFS, StorageFailed),
    ],
)
def test_a_full_disk_and_a_broken_one_are_told_apart(code, kind):
    error = storage_error("main", OSError(code, os.strerror(code)))
    assert type(error) is kind
    assert "'main'" in str(error)


def test_a_read_that_fails_is_an_error_of_the_storage_and_not_that_of_a_library_about_the_bytes():
    with pytest.raises(StorageFailed), reading("main"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(gzip.BadGzipFile), reading("main"):
        gzip.decompress(b"no gzip")


def test_a_file_in_memory_that_cannot_be_written_leaves_no_descriptor(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        memory_file(b"x")
    assert len(os.listdir("/proc/self/fd")) == len(before)


class Fsync:
    """In place of ``os.fsync``: every call waits for its gate, and fails when told to."""

    def __init__(self, monkeypatch) -> None:
        self.calls = 0
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.error = None
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, fd: int) -> None:
        self.calls += 1
        self.entered.release()
        assert self.gate.acquire(timeout=TIMEOUT_S)
        if self.error:
            raise self.error


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as executor:
        yield executor


def joined(durability, path, count: int) -> None:
    """Wait until ``count`` callers share the fsync that comes next."""
    done = threading.Event()
    while not done.wait(0.001):
        with durability._lock:
            batch = durability._waiting.get(path)
            if batch is not None and len(batch._condition._waiters) >= count:
                done.set()


@pytest.mark.parametrize("error", [None, OSError(errno.EIO, "bad disk")])
def test_callers_during_an_fsync_share_the_next_one(tmp_path, monkeypatch, threads, error):
    fsync, durability = Fsync(monkeypatch), Durability("always")
    running = threads.submit(durability.sync_directory, tmp_path)
    assert fsync.entered.acquire(timeout=TIMEOUT_S)
    later = [threads.submit(durability.sync_directory, tmp_path) for _ in range(5)]
    joined(durability, tmp_path, 4)
    fsync.gate.release()
    running.result(TIMEOUT_S)
    assert fsync.entered.acquire(timeout=TIMEOUT_S)
    assert not any(each.done() for each in later), "answered by an fsync that began before they asked"
    fsync.error = error
    fsync.gate.release()
    assert [each.exception(TIMEOUT_S) for each in later] == [error] * 5
    assert fsync.calls == 2


def test_never_means_no_fsync_at_all(tmp_path, monkeypatch):
    fsync, durability = Fsync(monkeypatch), Durability("never")
    monkeypatch.setattr(os, "fdatasync", fsync)
    durability.sync_directory(tmp_path)
    durability.sync_own_directory(tmp_path)
    durability.sync_data(0)
    assert fsync.calls == 0


def _mounts(monkeypatch, text: str, release: str = "6.1.0-18-amd64") -> None:
    """Pretend to have another kernel, and other mounts."""
    read = Path.read_text
    system = os.uname_result(("Linux", "host", release, "1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: system)
    monkeypatch.setattr(
        Path, "read_text", lambda self, *how: text if self == Path("/proc/self/mountinfo") else read(self, *how)
    )


@pytest.mark.parametrize(
    ("type_", "release", "quick"),
    [
        ("ext4", "6.1.0-18-amd64", True),
        ("xfs", "5.8.0", True),
        ("ext4", "5.4.0-150-generic", False),  # errors of syncfs are lost
        ("btrfs", "6.1.0", False),
        ("overlay", "6.1.0", False),
    ],
)
def test_syncfs_is_used_where_it_is_quick_and_reports_errors(tmp_path, monkeypatch, type_, release, quick):
    device = tmp_path.stat().st_dev
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /mnt rw,noatime shared:1 - {type_} /dev/vda rw\n"
    _mounts(monkeypatch, f"35 1 0:999 / / rw - ext4 /dev/vdb rw\n{line}", release)
    assert has_quick_syncfs(tmp_path) is quick
    durability = Durability("never")
    durability.prepare(tmp_path)
    assert not durability.prefers_whole()
    assert durability.open_whole() is None


def test_a_file_system_that_is_not_listed_is_not_synced_as_a_whole(tmp_path, monkeypatch):
    _mounts(monkeypatch, "35 1 0:999 / / rw - ext4 /dev/vdb rw\n")
    assert not has_quick_syncfs(tmp_path)


@pytest.mark.parametrize(("dirty", "writeback", "little"), [(148, 84, True), (16000, 0, True), (12000, 6000, False)])
def test_the_whole_file_system_is_not_synced_while_others_write_much(tmp_path, monkeypatch, dirty, writeback, little):
    text = f"MemTotal: 24684092 kB\nDirty:  {dirty} kB\nWriteback:   {writeback} kB\nWritebackTmp: 99999 kB\n"
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.BytesIO(text.encode()))
    monkeypatch.setattr("pkgrepo.storage.blobs.durability.has_quick_syncfs", lambda _: True)
    durability = Durability("always")
    durability.prepare(tmp_path)
    assert durability.prefers_whole() is little
    whole = durability.open_whole()
    assert whole is not None
    durability.sync_whole(whole)
    os.close(whole)
