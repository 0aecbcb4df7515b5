"""Processor time, memory and bytes written are those of the whole tree."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.contestants.server import ROOT
from tests.bench.measure import MIB, ProcessTree

# A parent that does nothing itself, and a child that does on every line it reads what the line says, then says so.
CHILD = """
import sys
held = []
for line in sys.stdin:
    if line == "burn\\n":
        sum(range(20_000_000))
    elif line == "hold\\n":
        held.append(b"x" * (64 << 20))
    elif line == "free\\n":
        held.clear()
    elif line == "write\\n":
        open(sys.argv[1], "wb").write(b"x" * (8 << 20))
    print("done", flush=True)
"""
PARENT = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"


class Family:
    """A process with one child that runs commands of the test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.tree = ProcessTree(process.pid)

    def do(self, what: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder beside the checkout: the system's own one may be in memory, where nothing counts as written."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder:
        yield Path(folder)


@pytest.fixture
def family(disk: Path) -> Iterator[Family]:
    command = [sys.executable, "-c", PARENT, CHILD, str(disk / "written")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        family = Family(process)
        family.do("nothing")
        yield family
        assert process.stdin is not None
        process.stdin.close()


def test_the_tree_holds_parent_and_child(family: Family) -> None:
    pids = family.tree.pids()
    assert pids[0] == family.process.pid
    assert len(pids) == 2


def test_processor_time_of_a_child_counts(family: Family) -> None:
    before = family.tree.cpu_s()
    family.do("burn")
    assert family.tree.cpu_s() > before


def test_the_peak_remembers_memory_that_was_given_back_until_it_is_reset(family: Family) -> None:
    before = family.tree.rss()
    family.do("hold")
    family.do("free")
    assert family.tree.peak_rss() >= before + 60 * MIB
    family.tree.reset_peak()
    assert family.tree.peak_rss() < before + 30 * MIB


def test_memory_that_parent_and_child_share_counts_once(family: Family) -> None:
    assert 0 < family.tree.pss() < family.tree.rss()


def test_processor_time_of_its_own_is_part_of_that_of_a_tree(family: Family) -> None:
    family.do("burn")
    assert 0 < family.tree.own_cpu_s() <= family.tree.cpu_s()


def test_bytes_written_by_a_child_count(family: Family) -> None:
    before = family.tree.written()
    family.do("write")
    assert family.tree.written() - before >= 8 * MIB


def test_a_tree_whose_root_is_gone_is_empty(family: Family) -> None:
    assert family.process.stdin is not None
    family.process.stdin.close()
    family.process.wait()
    assert (family.tree.pids(), family.tree.cpu_s(), family.tree.rss()) == ([], 0, 0)
