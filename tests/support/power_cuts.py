"""An ext4 file system whose power is cut, which discards everything that was not synced."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.timeouts import TIMEOUT_S

FS_IOC_SHUTDOWN = 0x8004587D  # the number in linux/fs.h
NO_LOG_FLUSH = 2  # discards everything that was not synced, as a power cut does


def mount(*arguments: str) -> None:
    """Mount a file system; the test is skipped where that is impossible."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount file systems")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not mount: {done.stderr.strip()}")


@contextmanager
def ext4_disk(folder: Path, size: int) -> Iterator[tuple[Path, Callable[[], None]]]:
    """
    Yield the folder of a new file system of ``size`` bytes, and ``cut()``, which mounts it again.

    Processes that have files open there must be killed before; what they wrote is in memory only, like that of others.
    """
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    image, place = folder / "image", folder / "disk"
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    place.mkdir()
    mount("-o", "loop", str(image), str(place))

    def cut() -> None:
        fd = os.open(place, os.O_RDONLY)
        fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(fd)
        _unmount(place)
        subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)

    try:
        yield place, cut
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _unmount(place: Path) -> None:
    """Unmount a file system as soon as nothing is open there: the kernel closes files of the dead a moment later."""
    ends_at = time.monotonic() + TIMEOUT_S
    while (done := subprocess.run(["umount", str(place)], capture_output=True, text=True, check=False)).returncode:
        assert "busy" in done.stderr, done.stderr
        assert time.monotonic() < ends_at, done.stderr
        time.sleep(0.02)
