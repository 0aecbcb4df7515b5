"""Processes that are killed while they write: what they were promised is there, and nothing is half there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import pytest_twisted

from pkgrepo.errors import StorageFailed
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalog_child import PUBLISHERS
from tests.support.catalogs import SqliteCase

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]

strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes system calls fail")


def fail(call, when):
    return (
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error=EIO:when={when}",
    )


class Child:
    """A publishing process, and what it said until it ended."""

    def __init__(self, root, name, wrapper=(), *how):
        command = [*wrapper, sys.executable, "-m", "tests.support.catalog_child", str(root), name, *how]
        self.errors = root / f"{name}.stderr"  # in a pipe that nobody reads there is no room for many tracebacks
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors)
        self.lines = []

    def read(self, count):
        for _ in range(count):
            line = self.process.stdout.readline()
            assert line, self.errors.read_text()
            self.lines.append(json.loads(line))
        return self.lines[-1]

    def kill(self):
        os.kill(self.lines[0]["started"], signal.SIGKILL)
        with self.process:  # not communicate(): that would pass over what readline() has read ahead
            rest = self.process.stdout.readlines()
        # Only whole lines are promises: the last one may have been cut by the signal.
        self.lines += [json.loads(line) for line in rest if line.endswith(b"\n")]

    @property
    def promised(self):
        return {line["path"] for line in self.lines if "path" in line and "error" not in line}


def everything(reader):
    repository = repositories.find_by_path(reader, "main", "py")
    return {
        "files": {row[0] for row in reader.all("SELECT path FROM file")},
        "versions": {row[0] for row in reader.all("SELECT key FROM version")},
        "events": [event.version_key for event in events.events_after(reader, 0, 10**6)],
        "blobs": reader.one("SELECT COUNT(*) FROM blob")[0],
        "bytes": reader.one("SELECT COALESCE(SUM(size), 0) FROM file")[0],
        "check": reader.all("PRAGMA integrity_check"),
        "dangling": reader.all("PRAGMA foreign_key_check"),
        "repository": repository,
    }


def assert_whole(found):
    assert found["check"] == [("ok",)]
    assert found["dangling"] == []
    assert found["files"] == found["versions"] == set(found["events"])
    assert len(found["events"]) == len(found["files"]) == found["blobs"] == found["repository"].serial
    assert found["repository"].bytes_used == found["bytes"]


@pytest.mark.parametrize("acknowledged", [1, 7, 150, 900])
@pytest_twisted.ensureDeferred
async def test_a_killed_process_keeps_its_promises(tmp_path, acknowledged):
    child = Child(tmp_path, "a")
    child.read(1 + acknowledged)
    child.kill()
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    found = await catalog.scan(everything)
    assert_whole(found)
    assert found["files"] >= child.promised
    assert len(child.promised) >= acknowledged
    await case.stop()


@pytest_twisted.ensureDeferred
async def test_a_killed_process_does_not_hold_up_its_neighbours(tmp_path):
    first, second = Child(tmp_path, "a"), Child(tmp_path, "b")
    first.read(101)
    second.read(101)
    first.kill()
    second.read(200)
    second.kill()
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    found = await catalog.scan(everything)
    assert_whole(found)
    assert found["files"] >= first.promised | second.promised
    await case.stop()


@strace
@pytest.mark.parametrize(("call", "when"), [("fdatasync", "40+23"), ("pwrite64", "400+997")])
@pytest_twisted.ensureDeferred
async def test_calls_that_fail_now_and_then_fail_their_commits_alone(tmp_path, call, when):
    child = Child(tmp_path, "a", fail(call, when))
    child.read(400)
    child.kill()
    failed = {line["path"] for line in child.lines if "error" in line}
    assert {line["error"] for line in child.lines if "error" in line} == {StorageFailed.__name__}
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    found = await catalog.scan(everything)
    assert_whole(found)
    assert found["files"] >= child.promised
    assert not found["files"] & failed
    await case.stop()


@strace
@pytest_twisted.ensureDeferred
async def test_what_was_said_to_have_failed_does_not_come_back_after_a_crash(tmp_path):
    # From some moment on every flush fails but the next: each publisher meets one failure and ends there, and the
    # process dies with the log as its last failing commit left it.
    child = Child(tmp_path, "a", fail("fdatasync", "40+2"), "end")
    while "ended" not in child.read(1):
        pass
    child.kill()
    failed = {line["path"] for line in child.lines if "error" in line}
    assert len(failed) == PUBLISHERS
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    found = await catalog.scan(everything)
    assert_whole(found)
    assert found["files"] == child.promised
    await case.stop()
