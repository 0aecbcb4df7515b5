"""Disks whose power is cut or that are full, and system calls about files that fail or are slow."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tests.support.power_cuts import ext4_disk
from tests.support.timeouts import TIMEOUT_S

DISK: Final = 32 * 1024**3  # bytes of the disk whose power is cut; its image is sparse, and has names for 10^6 files
WRITES: Final = "pwrite64,pwritev"
SYNCS: Final = "fsync,fdatasync,syncfs"
# Calls that fail, by the name of the fault, as strace takes it: each third call of a thread, from the second on.
INJECTIONS: Final[Mapping[str, str]] = {
    "EIO of writes": f"{WRITES}:error=EIO:when=2+3",
    "EIO of syncs": f"{SYNCS}:error=EIO:when=2+3",
    "EIO of reads": "pread64,preadv:error=EIO:when=2+3",
    "EIO of names": "linkat,link,rename,renameat,renameat2,unlink,unlinkat,mkdir:error=EIO:when=2+3",
    "ENOSPC of writes": f"{WRITES}:error=ENOSPC:when=2+3",
    "writes that write nothing": f"{WRITES}:retval=0:when=2+5",
    "syncs that take long": f"{SYNCS}:delay_exit=200000",
}


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
        yield Site(folder, None, "power cuts and a full disk need root and mkfs.ext4")
        return
    try:
        with ext4_disk(folder, DISK) as (place, cut):
            yield Site(place, cut)
    except pytest.skip.Exception as error:
        yield Site(folder, None, f"power cuts and a full disk: {error}")


@contextmanager
def full(place: Path) -> Iterator[None]:
    """Leave no byte on a disk within the block. Its blocks are reserved and not written, so that it takes no time."""
    name = place / "filler"
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        size = 0
        for step in (2**30, 2**24, 2**20, 2**12):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(fd, size, step)
                    size += step
        yield
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):  # if the power was cut meanwhile
            name.unlink()


def cannot_trace() -> str:
    """Why system calls cannot be made to fail here, or an empty text."""
    if shutil.which("strace") is None:
        return "system calls that fail need strace"
    done = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return f"system calls that fail: {done.stderr.strip()}" if done.returncode else ""


@contextmanager
def injected(pids: Sequence[int], injection: str) -> Iterator[None]:
    """Let system calls of processes and of all their threads fail within the block; see ``INJECTIONS``."""
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={injection.partition(':')[0]}"]
    command += ["-e", f"inject={injection}", *(part for pid in pids for part in ("-p", str(pid)))]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)  # it lets them go on without it
        tracer.wait(TIMEOUT_S)
