"""The lock that shows which processes use a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from pkgrepo.storage.process_lock import EPOCH, NAME, KeyLeases, Lease, ProcessLock
from tests.support.server_process import ROOT

CHILD = """
import sys
from pathlib import Path
from pkgrepo.storage.process_lock import ProcessLock
lock = ProcessLock(Path(sys.argv[1]))
print(lock.acquire() is not None, flush=True)
sys.stdin.read()
"""


def child(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip() == "True"


def end(process):
    process.kill()
    process.communicate()


def test_only_the_first_process_gets_the_lock_exclusively(tmp_path):
    first, second = ProcessLock(tmp_path), ProcessLock(tmp_path)
    assert first.acquire() is not None
    assert second.acquire() is None
    first.release()
    third = ProcessLock(tmp_path)
    assert third.acquire() is None  # the second is still there
    second.release()
    third.release()
    third.release()
    assert ProcessLock(tmp_path).acquire() is not None


def test_the_lock_is_held_until_the_process_is_killed(tmp_path):
    process, alone = child(tmp_path)
    assert alone
    ours = ProcessLock(tmp_path)
    assert ours.acquire() is None
    end(process)
    ours.release()
    assert ours.acquire() is not None
    second, alone = child(tmp_path)
    assert not alone
    end(second)
    ours.release()


def test_the_time_of_exclusive_use_is_that_of_the_file_system(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.touch()
    lock = ProcessLock(tmp_path)
    since = lock.acquire()
    after.touch()
    microseconds = (since - EPOCH) // timedelta(microseconds=1)
    assert before.stat().st_mtime_ns // 1000 <= microseconds <= after.stat().st_mtime_ns // 1000
    assert after.stat().st_mtime >= since.timestamp()
    lock.release()


def test_a_folder_without_a_lock_file_may_be_shared(tmp_path):
    lock = ProcessLock(tmp_path / "nowhere")
    assert lock.acquire() is None
    lock.release()


def test_is_locked_creates_no_file(tmp_path):
    first = ProcessLock(tmp_path)
    assert not ProcessLock(tmp_path).is_locked()
    assert list(tmp_path.iterdir()) == []
    assert not ProcessLock(tmp_path / "nowhere").is_locked()
    first.acquire()
    before = (tmp_path / NAME).stat()
    assert ProcessLock(tmp_path).is_locked()
    first.release()
    assert not ProcessLock(tmp_path).is_locked()
    assert (tmp_path / NAME).stat() == before


def test_the_last_one_that_leaves_knows_it(tmp_path):
    first, second, third = (ProcessLock(tmp_path) for _ in range(3))
    for each in (first, second):
        each.acquire()
    assert not first.leave()
    assert second.leave()
    assert third.acquire() is None  # the second still holds it
    assert not second.leave()  # another one has come meanwhile
    assert third.leave()
    for each in (first, second, third):
        each.release()


def test_a_lease_has_one_holder(tmp_path):
    one, other = Lease(tmp_path / "lease"), Lease(tmp_path / "lease")
    assert [one.acquire(), one.acquire(), other.acquire()] == [True, True, False]
    one.release()
    assert other.acquire()
    one.release()
    assert not one.acquire()
    other.release()


def test_a_lease_in_a_folder_that_is_missing_is_not_had(tmp_path):
    assert not Lease(tmp_path / "nowhere" / "lease").acquire()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leases"


def test_one_of_two_has_a_lease(path: Path) -> None:
    first, second = KeyLeases(path), KeyLeases(path)
    assert (first.acquire("a"), second.acquire("a"), second.acquire("b")) == (True, False, True)
    first.release("a")
    assert second.acquire("a")
    first.close()
    second.close()


def test_a_lease_is_not_given_twice_to_one_process(path: Path) -> None:
    leases = KeyLeases(path)
    assert (leases.acquire("a"), leases.acquire("a")) == (True, False)
    leases.release("a")
    assert leases.acquire("a")
    leases.close()


def test_what_ends_after_the_leases_were_closed_releases_nothing(path: Path) -> None:
    first, second = KeyLeases(path), KeyLeases(path)
    assert first.acquire("a")
    first.close()
    assert second.acquire("a")
    before = os.listdir("/proc/self/fd")
    first.release("a")
    assert os.listdir("/proc/self/fd") == before
    assert (first.acquire("a"), first.acquire("b"), second.acquire("b")) == (False, True, False)
    first.release("b")  # what was taken after it is given back
    assert second.acquire("b")
    first.close()
    second.close()


def test_names_may_have_any_characters_and_length(path: Path) -> None:
    first, second = KeyLeases(path), KeyLeases(path)
    for name in ("", "é/\0", "\udc80", "x" * 100_000):
        assert (first.acquire(name), second.acquire(name)) == (True, False)
    first.close()
    assert second.acquire("")
    second.close()


def test_the_leases_of_a_process_that_is_killed_are_free(path: Path) -> None:
    code = f"""
from pathlib import Path
from pkgrepo.storage.process_lock import KeyLeases
print(KeyLeases(Path({str(path)!r})).acquire("a"), flush=True)
input()
"""
    leases = KeyLeases(path)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.getcwd()) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"True\n"
        assert not leases.acquire("a")
        child.kill()
    assert leases.acquire("a")
    leases.close()


def test_without_a_lock_file_everybody_has_every_lease(tmp_path: Path) -> None:
    first, second = KeyLeases(tmp_path / "missing" / "leases"), KeyLeases(tmp_path / "missing" / "leases")
    assert (first.acquire("a"), second.acquire("a")) == (True, True)
    first.release("a")
    first.close()
    second.close()


def test_others_cannot_take_locks(path: Path) -> None:
    leases = KeyLeases(path)
    leases.acquire("a")
    assert path.stat().st_mode & 0o777 == 0o600
    leases.close()
