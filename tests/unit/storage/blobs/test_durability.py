import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.storage.blobs.durability import Durability, storage_error
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
