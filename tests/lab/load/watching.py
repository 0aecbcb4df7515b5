"""What others feel of a load, and what the server needs for it: latencies, processor time, memory, descriptors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from tests.bench.clients.load import percentile
from tests.bench.measure import MIB, ProcessTree
from tests.support.server_process import ROOT

IDLE_S: Final = 5.0  # in which they are measured before a load


@define
class Others:
    """
    Another client, see L{tests.lab.load.others}; ``took_ms`` are its latencies by path, ``failed`` what it was refused.
    """

    url: str
    auth: tuple[str, str]
    paths: list[str]
    took_ms: list[list[float]] = field(factory=list)
    failed: list[str] = field(factory=list)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read while the block runs; what was measured before is forgotten."""
        command = [sys.executable, "-m", "tests.lab.load.others"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"url": self.url, "auth": self.auth, "paths": self.paths}) + "\n")
            process.stdin.flush()
            process.stdout.readline()  # it has begun
            try:
                yield
            finally:
                process.stdin.close()
                found = json.loads(process.stdout.read())
        self.took_ms = found["took_ms"]
        self.failed += found["failed"]

    @property
    def p99_ms(self) -> list[float]:
        """The 99th percentiles of the last block, of each path."""
        return [percentile(each, 99) for each in self.took_ms]


@define
class Server:
    """The processes of a server, as the kernel counts them."""

    tree: ProcessTree

    @classmethod
    def of(cls, pid: int) -> Server:
        """The server with this main process."""
        return cls(ProcessTree(pid))

    def descriptors(self) -> int:
        """Open files of all processes."""
        return sum(_descriptors(pid) for pid in self.tree.pids())

    def settled_cpu_s(self) -> float:
        """Processor time so far, when what follows from earlier requests is done."""
        self.tree.settle()
        return self.tree.cpu_s()

    def describe(self) -> str:
        """Memory and descriptors now, and the most memory since the start."""
        now, most = self.tree.rss() / MIB, self.tree.peak_rss() / MIB
        return f"{now:.0f} MiB (peak {most:.0f}), {self.descriptors()} descriptors"


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
