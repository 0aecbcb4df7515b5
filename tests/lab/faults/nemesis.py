"""The faults that come to a server: each is given the server, and returns when it is dead or goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tests.support.power_cuts import ext4_disk
from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S
from tests.support.workers import kill, workers_of

DISK: Final = 32 * 1024**3  # bytes of the disk whose power is cut; its image is sparse, and has names for 10^6 files
LONGEST_PAUSE_S: Final = 3.0


@frozen
class Site:
    """The folder of a server, and how its power is cut; None if this machine cannot."""

    folder: Path
    cut: Callable[[], None] | None
    why: str = ""


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A folder on a file system of its own, or an ordinary one with the reason."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        yield Site(folder, None, "a power cut needs root and mkfs.ext4")
        return
    try:
        with ext4_disk(folder, DISK) as (place, cut):
            yield Site(place, cut)
    except pytest.skip.Exception as error:
        yield Site(folder, None, str(error))


def kill_server(server: ServerProcess, _site: Site, _rng: random.Random) -> bool:
    """SIGKILL to the master and all processes below it. Returns whether the server goes on."""
    _kill_all(server)
    return False


def kill_worker(server: ServerProcess, _site: Site, rng: random.Random) -> bool:
    """SIGKILL to one worker, in whose place the master starts another one."""
    if found := workers_of(server.pid):
        kill(rng.choice(found))
    return True


def pause(server: ServerProcess, _site: Site, rng: random.Random) -> bool:
    """SIGSTOP to all processes for some time."""
    _signal(server, signal.SIGSTOP)
    time.sleep(rng.uniform(0.2, LONGEST_PAUSE_S))
    _signal(server, signal.SIGCONT)
    return True


def cut_power(server: ServerProcess, site: Site, _rng: random.Random) -> bool:
    """Stop all processes, discard what was not synced, and mount the disk again."""
    assert site.cut is not None
    _signal(server, signal.SIGSTOP)
    _kill_all(server)  # what they wrote is in memory only: the disk has what was synced
    site.cut()
    return False


def stop(server: ServerProcess, _site: Site, _rng: random.Random) -> bool:
    """SIGTERM, as a service manager sends it."""
    server.stop()
    return False


FAULTS: Final[Mapping[str, Callable[[ServerProcess, Site, random.Random], bool]]] = {
    "kill -9 of the server": kill_server,
    "kill -9 of a worker": kill_worker,
    "all processes stopped for some time": pause,
    "power cut": cut_power,
    "restart": stop,
}
CHANCES: Final[Mapping[str, int]] = {
    "kill -9 of the server": 10,
    "kill -9 of a worker": 4,
    "all processes stopped for some time": 1,
    "power cut": 4,
    "restart": 1,
}


def chosen(site: Site, rng: random.Random) -> str:
    """The name of a fault, by chance, of those that can be had here."""
    names = [each for each in FAULTS if site.cut is not None or each != "power cut"]
    (name,) = rng.choices(names, [CHANCES[each] for each in names])
    return name


def _signal(server: ServerProcess, number: signal.Signals) -> list[int]:
    """Send a signal to all processes of a server; returns their ids."""
    found = [server.pid]
    for pid in found:  # which grows
        with suppress(OSError):
            found += workers_of(pid)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return found


def _kill_all(server: ServerProcess) -> None:
    """Kill all processes of a server, and wait until they have nothing open any more."""
    left = _signal(server, signal.SIGKILL)
    server.end(signal.SIGKILL)
    ends_at = time.monotonic() + TIMEOUT_S
    while any(_holds(pid) for pid in left):
        assert time.monotonic() < ends_at, left
        time.sleep(0.01)


def _holds(pid: int) -> bool:
    """Whether a process has files open; one that is dead, or that nobody has waited for, has none."""
    try:
        return bool(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
