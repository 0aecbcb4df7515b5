"""Signals to all processes of a server, and limits of each of them."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S
from tests.support.workers import kill, workers_of

WORKER: Final = "kill -9 of a worker"
KILLS: Final = (2, 4)  # of workers, one after the other
APART_S: Final = (0.0, 0.4)


def freeze(server: ServerProcess) -> None:
    """SIGSTOP to all processes of a server."""
    _signal(server, signal.SIGSTOP)


def thaw(server: ServerProcess) -> None:
    """SIGCONT to all of them."""
    _signal(server, signal.SIGCONT)


def kill_all(server: ServerProcess) -> None:
    """Kill all processes of a server, and wait until they have nothing open any more."""
    left = _signal(server, signal.SIGSTOP)  # so that none begins another one meanwhile
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.end(signal.SIGKILL)
    wait_until_closed(left)


def kill_worker(server: ServerProcess, rng: random.Random) -> None:
    """SIGKILL to one worker, in whose place the master starts another one."""
    with suppress(OSError):
        if found := workers_of(server.pid):
            kill(rng.choice(found))


def kill_workers(servers: Sequence[ServerProcess], rng: random.Random) -> list[str]:
    """SIGKILL to one worker after the other, also to those that have just begun. Returns a name for each."""
    names = []
    for number in range(rng.randint(*KILLS)):
        if number:
            time.sleep(rng.uniform(*APART_S))
        kill_worker(rng.choice(servers), rng)
        names.append(WORKER)
    return names


def stop(server: ServerProcess) -> None:
    """SIGTERM, as a service manager sends it."""
    server.stop()


def wait_until_closed(pids: Iterable[int]) -> None:
    """Wait until processes that were killed have nothing open any more."""
    ends_at = time.monotonic() + TIMEOUT_S
    while left := [pid for pid in pids if _holds(pid)]:
        assert time.monotonic() < ends_at, left
        time.sleep(0.01)


def processes_of(server: ServerProcess) -> list[int]:
    """The ids of all processes of a server, the master first."""
    found = [server.pid]
    for pid in found:  # which grows
        with suppress(OSError):
            found += workers_of(pid)
    return found


@contextmanager
def limited(server: ServerProcess, limit: int, of: Iterable[tuple[int, int]]) -> Iterator[None]:
    """
    Set a limit of the processes of a server within the block; ``of`` has pairs of process and number.

    Workers that begin within it have the limit of the master, and get back what that gets back.
    """
    before: dict[int, tuple[int, int]] = {}
    for pid, number in of:
        with suppress(OSError):
            before[pid] = resource.prlimit(pid, limit)
            resource.prlimit(pid, limit, (number, before[pid][1]))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(OSError):
                resource.prlimit(pid, limit, limits)
        for pid in processes_of(server):
            if server.pid in before and pid not in before:
                with suppress(OSError):
                    resource.prlimit(pid, limit, before[server.pid])


def highest_descriptor(pid: int) -> int:
    """The highest number of an open descriptor of a process; 0 if it has ended."""
    try:
        return max(map(int, os.listdir(f"/proc/{pid}/fd")), default=0)
    except OSError:
        return 0


def _signal(server: ServerProcess, number: signal.Signals) -> list[int]:
    """Send a signal to all processes of a server, also to those that have begun meanwhile; returns their ids."""
    found: list[int] = []
    while new := [pid for pid in processes_of(server) if pid not in found]:
        for pid in new:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        found += new
    return found


def _holds(pid: int) -> bool:
    """Whether a process has files open; one that is dead, or that nobody has waited for, has none."""
    try:
        return bool(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
