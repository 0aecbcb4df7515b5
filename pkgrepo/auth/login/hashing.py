"""
The threads that hash passwords: at a lower priority than requests are served, and few in the whole server.

The workers of a server share permits, which are locks of single bytes of one file (``F_OFD_SETLKW``, fcntl(2)); the
kernel releases those of a process that ends. A thread waits for one, behind the fair queue of its own process.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EAGAIN
from functools import partial
from pathlib import Path
from threading import get_native_id
from typing import Any, Final, ParamSpec, TypeVar

from twisted.internet.defer import Deferred

from pkgrepo.storage.pools import Pool
from pkgrepo.storage.private_files import OWNER_ONLY, tighten

P = ParamSpec("P")
T = TypeVar("T")

PERMITS: Final = 2  # verifications at a time, each with 64 MiB of memory and, for 50 ms, several cores
NICE: Final = 10  # argon2's own threads have it, too: eight of them leave a core to one thread that serves
_FLOCK: Final = "hhqqi4x"  # struct flock: type, whence, start, length, process


class HashingThreads:
    """Calls a function in one of the threads; with ``permits``, the path of a file, at most two in all processes."""

    def __init__(self, pool: Pool, permits: Path | None) -> None:
        self._pool = pool
        self._permits = permits

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """The result of the function."""
        return self._pool(self._call, partial(function, *args, **kwargs))

    def _call(self, function: Callable[[], T]) -> T:
        with suppress(OSError):  # forbidden by some sandboxes
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICE)
        if self._permits is None:
            return function()
        with hold_permit(self._permits):
            return function()


@contextmanager
def hold_permit(path: Path) -> Iterator[None]:
    """Hold a permit during the block; waits for it first. Blocks. Where locks cannot be had it does not wait."""
    try:
        tighten(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    except OSError:  # no descriptor is left, or the disk is full
        yield
        return
    try:
        with suppress(OSError):
            if not any(_try_lock(descriptor, number) for number in range(PERMITS)):
                _lock(descriptor, fcntl.F_OFD_SETLKW, random.randrange(PERMITS))  # noqa: S311 - no secret
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, number: int) -> bool:
    try:
        _lock(descriptor, fcntl.F_OFD_SETLK, number)
    except OSError as error:
        if error.errno in (EACCES, EAGAIN):
            return False
        raise
    return True


def _lock(descriptor: int, command: int, number: int) -> Any:
    return fcntl.fcntl(descriptor, command, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
