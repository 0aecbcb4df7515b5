"""
What a server costs: processor time, memory and bytes written of a whole process tree, read from /proc.

=============  =============================================================  ==================================
figure         source                                                         edge
=============  =============================================================  ==================================
processor      utime + stime of every process, and of children it has reaped  a child that left unreaped is lost
own processor  the same without the children that it has reaped
memory         VmRSS of every process                                         pages shared by workers count twice
mapped memory  RssFile of every process                                       the kernel takes pages of files back
                                                                              when it needs them
shared memory  Pss of every process                                           pages shared with others count in part
peak memory    VmHWM of every process, reset when the watch begins            a sum of peaks of different moments
bytes written  write_bytes of every process                                   counts pages made dirty, also when
                                                                              the file is deleted before write-back
=============  =============================================================  ==================================
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from attrs import frozen

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
QUIET_S = 0.2  # seconds without any processor time after which a tree counts as idle
SETTLE_LIMIT_S = 5.0
MIB = 1 << 20


@frozen
class Cost:
    """Resource use of a process tree between two readings. Memory in bytes; growth is relative to the first reading."""

    seconds: float
    cpu_s: float
    written: int
    rss_before: int
    rss_peak: int
    rss_after: int

    @property
    def rss_growth(self) -> int:
        """Bytes by which the peak exceeded the memory at the beginning."""
        return max(0, self.rss_peak - self.rss_before)


class ProcessTree:
    """Processes and all their current descendants."""

    def __init__(self, *roots: int) -> None:
        self.roots = roots

    def pids(self) -> list[int]:
        """Ids of the living processes of the tree; empty when the roots are gone."""
        found: list[int] = []
        waiting = [*self.roots]
        while waiting:
            pid = waiting.pop()
            if not (PROC / str(pid)).exists():
                continue
            found.append(pid)
            waiting += _children(pid)
        return found

    def cpu_s(self) -> float:
        """Seconds of processor time so far, user and system, with those of children that have ended."""
        return sum(_cpu_ticks(pid) for pid in self.pids()) * TICK_S

    def own_cpu_s(self) -> float:
        """Seconds of processor time of the living processes, without those of children that have ended."""
        return sum(_cpu_ticks(pid, reaped=False) for pid in self.pids()) * TICK_S

    def pss(self) -> int:
        """Resident bytes now; a page that several processes share is divided among them."""
        return sum(_status_bytes(pid, "Pss", "smaps_rollup") for pid in self.pids())

    def rss(self) -> int:
        """Resident bytes now."""
        return sum(rss_of(pid) for pid in self.pids())

    def peak_rss(self) -> int:
        """Return the maximum of resident bytes since the last L{reset_peak}."""
        return sum(_status_bytes(pid, "VmHWM") for pid in self.pids())

    def reset_peak(self) -> None:
        """Reset the peak to the current resident bytes."""
        for pid in self.pids():
            # proc(5), clear_refs: 5 resets the peak resident set size to the current one
            _write(PROC / str(pid) / "clear_refs", "5")

    def written(self) -> int:
        """Bytes sent towards the disk so far."""
        return sum(_written(pid) for pid in self.pids())

    def settle(self) -> None:
        """Wait until the tree is idle, at most 5 seconds, since work after the last response is part of its cost."""
        deadline = time.monotonic() + SETTLE_LIMIT_S
        before = self.cpu_s()
        while time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = self.cpu_s()
            if now - before <= TICK_S:
                return
            before = now


def rss_of(pid: int) -> int:
    """Resident bytes of a process now; 0 if it has ended."""
    return _status_bytes(pid, "VmRSS")


def mapped_of(pid: int) -> int:
    """Those of them that are pages of files, such as of the database that readers map; 0 if it has ended."""
    return _status_bytes(pid, "RssFile")


class Watch:
    """Reads a process tree at the beginning and end of a ``with`` block; L{cost} is the difference."""

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self.cost: Cost

    def __enter__(self) -> Watch:
        self._tree.reset_peak()
        self._rss = self._tree.rss()
        self._written = self._tree.written()
        self._cpu_s = self._tree.cpu_s()
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._started
        self._tree.settle()
        self.cost = Cost(
            seconds=seconds,
            cpu_s=self._tree.cpu_s() - self._cpu_s,
            written=self._tree.written() - self._written,
            rss_before=self._rss,
            rss_peak=self._tree.peak_rss(),
            rss_after=self._tree.rss(),
        )


def _read(path: Path) -> str:
    """Return the text of a file below /proc; empty if its process has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except (FileNotFoundError, ProcessLookupError):
        return


def _children(pid: int) -> list[int]:
    lists = [_read(task / "children") for task in (PROC / str(pid) / "task").glob("*")]
    return [int(each) for line in lists for each in line.split()]


def _cpu_ticks(pid: int, *, reaped: bool = True) -> int:
    stat = _read(PROC / str(pid) / "stat")
    if not stat:
        return 0
    # proc(5): the name in brackets may hold blanks, the fields after it are counted from the third one
    fields = stat.rpartition(")")[2].split()
    return sum(int(each) for each in fields[11 : 15 if reaped else 13])


def _status_bytes(pid: int, name: str, file: str = "status") -> int:
    for line in _read(PROC / str(pid) / file).splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _written(pid: int) -> int:
    for line in _read(PROC / str(pid) / "io").splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0
