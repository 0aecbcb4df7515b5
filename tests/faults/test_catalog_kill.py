"""Processes that are killed while they write: acknowledged transactions are complete, and none is partial."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
    """A publishing process and its output."""

    def __init__(self, root, name, wrapper=(), *how):
        command = [*wrapper, sys.executable, "-m", "tests.support.catalog_child", str(root), name, *how]
        self.errors = root / f"{name}.stderr"  # a file, because many tracebacks would fill a pipe that is not read
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
        with self.process:  # not communicate(), which loses what readline() has buffered
            rest = self.process.stdout.readlines()
        # Only complete lines are acknowledgements; the kill may have truncated the last one.
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
async def test_a_killed_process_loses_no_acknowledged_write(tmp_path, acknowledged):
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


async def test_a_killed_process_does_not_block_other_processes(tmp_path):
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
@pytest.mark.parametrize(("call", "when"), [("fdatasync", "60+23"), ("pwrite64", "1400+997")])
async def test_occasional_system_call_failures_fail_only_their_own_commits(tmp_path, call, when):
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
async def test_a_write_that_was_reported_as_failed_does_not_appear_after_a_crash(tmp_path):
    # From the 60th fdatasync on, when the catalog was made, every second one fails. Each publisher gets one failure and
    # ends, and then the process is killed, with the write-ahead log as its last failed commit left it.
    child = Child(tmp_path, "a", fail("fdatasync", "60+2"), "end")
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
