"""Memory for buffers, watched by the page faults of a process, and the processors of containers and services."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from twisted.internet.selectreactor import SelectReactor

from pkgrepo.process.resources import usable_memory, usable_processors, use_steady_clock

TRANSFER = """
import resource
import sys

if sys.argv[1] == "kept":
    from pkgrepo.process.resources import keep_freed_buffers

    assert keep_freed_buffers()
for turn in range(101):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [bytes(64 * 1024) for _ in range(16)]
    whole = b"".join(pieces[:8])
    del pieces, whole
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(mode: str) -> int:
    """Of a hundred turns in which 1.5 MiB are taken and given back."""
    done = subprocess.run(
        [sys.executable, "-c", TRANSFER, mode], capture_output=True, text=True, timeout=60, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_buffers_are_made_of_memory_that_is_there() -> None:
    assert page_faults("kept") < page_faults("left alone") / 10


@pytest.fixture(autouse=True)
def _eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def count(groups: Path, membership: str) -> int:
    (groups / "membership").write_text(membership)
    return usable_processors(groups, groups / "membership")


def test_without_control_groups_it_is_the_set_of_processors(tmp_path: Path) -> None:
    assert usable_processors(tmp_path, tmp_path / "missing") == 8


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000\n", 8),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("6400000 100000\n", 8),
        ("nonsense", 8),
        ("100000 0\n", 8),
        ("", 8),
    ],
    ids=["none", "whole", "part", "tiny", "more", "damaged", "no-period", "empty"],
)
def test_a_container_has_its_quota(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert count(tmp_path, "0::/\n") == expected


def test_the_quota_of_a_slice_above_counts(tmp_path: Path) -> None:
    (tmp_path / "some.slice" / "own.service").mkdir(parents=True)
    (tmp_path / "some.slice" / "cpu.max").write_text("300000 100000\n")
    (tmp_path / "some.slice" / "own.service" / "cpu.max").write_text("max 100000\n")
    assert count(tmp_path, "0::/some.slice/own.service\n") == 3


def test_a_quota_of_version_1(tmp_path: Path) -> None:
    group = tmp_path / "cpu" / "docker"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("400000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    assert count(tmp_path, "4:cpu,cpuacct:/docker\n2:memory:/docker\n") == 4
    (group / "cpu.cfs_quota_us").write_text("-1\n")
    assert count(tmp_path, "4:cpu,cpuacct:/docker\n") == 8


def memory(groups: Path, membership: str = "0::/\n") -> int:
    (groups / "membership").write_text(membership)
    return usable_memory(groups, groups / "membership")


def test_without_a_limit_it_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert usable_memory(tmp_path, tmp_path / "missing") == machine
    for unlimited in ("max\n", "nonsense", "", f"{2**63 - 4096}\n"):
        (tmp_path / "memory.max").write_text(unlimited)
        assert memory(tmp_path) == machine


def test_a_container_has_the_least_memory_of_its_groups(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "memory.max").write_text("1048576\n")
    (tmp_path / "a" / "memory.high").write_text("4096\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("8192\n")
    assert memory(tmp_path, "0::/a/b\n") == 4096
    assert memory(tmp_path, "0::/other\n") == 1048576


def test_groups_of_version_1_have_a_hierarchy_for_memory(tmp_path: Path) -> None:
    (tmp_path / "memory" / "own").mkdir(parents=True)
    (tmp_path / "memory" / "own" / "memory.limit_in_bytes").write_text("12288\n")
    assert memory(tmp_path, "5:cpu,cpuacct:/own\n4:memory:/own\n") == 12288


def test_timers_follow_the_steady_clock_and_not_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reactor(SelectReactor):
        pass

    reactor, calls = Reactor(), []
    assert use_steady_clock(reactor)
    for each in (-86_400, 0, 365 * 86_400):
        reactor.callLater(60, calls.append, each)
        monkeypatch.setattr(time, "time", partial(float.__add__, time.time(), float(each)))
        reactor.runUntilCurrent()
        assert (calls, 0 < reactor.timeout() <= 60) == ([], True)
    reactor.__init__()  # as a forked worker does
    assert reactor.seconds == time.monotonic
    reactor.callLater(60, calls.append, 0)
    assert not use_steady_clock(reactor), "it has timers by the other clock"


POOLS = """
import ctypes
import sys
import threading

if sys.argv[1] == "shared":
    from pkgrepo.process.resources import share_one_pool

    assert share_one_pool()
barrier = threading.Barrier(9)


def work():
    held = [bytes(1000) for _ in range(100)]
    barrier.wait()
    barrier.wait()


for _ in range(8):
    threading.Thread(target=work).start()
barrier.wait()
ctypes.CDLL(None).malloc_stats()
barrier.wait()
"""


def pools(mode: str) -> int:
    """Of malloc, of a process with nine threads."""
    done = subprocess.run([sys.executable, "-c", POOLS, mode], capture_output=True, text=True, timeout=60, check=True)
    return done.stderr.count("Arena ")


def test_threads_share_one_pool_of_memory() -> None:
    assert pools("shared") == 1
    assert pools("usual") > 1


RETURNED = """
import threading
from pathlib import Path

from pkgrepo.process.resources import keep_freed_buffers, return_freed_memory


def mib():
    (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssAnon")]
    return int(line.split()[1]) // 1024


def work():
    held = [bytes(8000) for _ in range(8000)]
    last.append(bytes(8000))  # behind them, so that the pool of the thread does not end before it


keep_freed_buffers()
last = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
before = mib()
assert return_freed_memory()
print(before - mib())
"""


def test_freed_memory_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", RETURNED], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 50


SOURCES = """
import linecache
import sys

from attrs import frozen

from pkgrepo.process.resources import keep_no_generated_sources

frozen(type("Before", (), {"__annotations__": {"x": int}}))
keep_no_generated_sources()
frozen(type("After", (), {"__annotations__": {"x": int}}))
assert linecache.getline(linecache.__file__, 1)
print(sum(name.startswith("<attrs generated") for name in linecache.cache), linecache.__file__ in linecache.cache)
"""


def test_sources_of_generated_methods_are_not_kept_and_those_of_files_are() -> None:
    done = subprocess.run([sys.executable, "-c", SOURCES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0", "True"]
