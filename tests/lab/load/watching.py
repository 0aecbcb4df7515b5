"""What others feel of a load, and what the server needs for it: latencies, processor time, memory, descriptors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from tests.bench.clients.load import percentile
from tests.bench.measure import MIB, ProcessTree
from tests.support.http_client import HttpClient

PAUSE_S: Final = 0.02  # between the requests of others
IDLE_S: Final = 5.0  # in which they are measured before a load


@define
class Others:
    """A client that reads small things all the time, one after the other; ``took_ms`` are its latencies."""

    client: HttpClient
    paths: list[str]
    took_ms: list[float] = field(factory=list)
    failed: list[str] = field(factory=list)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read while the block runs; what was measured before is forgotten."""
        self.took_ms.clear()
        ended = threading.Event()
        thread = threading.Thread(target=self._read, args=[ended])
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the last block; 0 without a response."""
        return percentile(self.took_ms, 99) if self.took_ms else 0.0

    def _read(self, ended: threading.Event) -> None:
        number = 0
        while not ended.is_set() or not self.took_ms:
            path = self.paths[number % len(self.paths)]
            began = time.perf_counter()
            try:
                reply = self.client.get(path)
            except OSError as error:
                self.failed.append(f"{path}: {error}")
            else:
                self.took_ms.append((time.perf_counter() - began) * 1e3)
                if reply.status != 200:
                    self.failed.append(f"{path}: {reply.status}")
            number += 1
            ended.wait(PAUSE_S)


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
