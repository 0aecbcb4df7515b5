"""What faults are made of: signals to all processes of a server, and a disk whose power is cut."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tests.support.power_cuts import ext4_disk
from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S
from tests.support.workers import workers_of

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


def freeze(server: ServerProcess) -> None:
    """SIGSTOP to all processes of a server."""
    _signal(server, signal.SIGSTOP)


def thaw(server: ServerProcess) -> None:
    """SIGCONT to all of them."""
    _signal(server, signal.SIGCONT)


def kill_all(server: ServerProcess) -> None:
    """Kill all processes of a server, and wait until they have nothing open any more."""
    left = _signal(server, signal.SIGKILL)
    server.end(signal.SIGKILL)
    ends_at = time.monotonic() + TIMEOUT_S
    while any(_holds(pid) for pid in left):
        assert time.monotonic() < ends_at, left
        time.sleep(0.01)


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


def _holds(pid: int) -> bool:
    """Whether a process has files open; one that is dead, or that nobody has waited for, has none."""
    try:
        return bool(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
