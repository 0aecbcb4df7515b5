"""Locks between the programs of one machine, which end with the program that holds them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pkgrepo.errors import Conflict
from pkgrepo.small_files import private_opener

_STEP_S: Final = 0.02  # between two attempts


def try_lock(file: IO[bytes]) -> bool:
    """Whether this process has an open file alone from now on: by flock(2), or a lock of its first byte on Windows."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - each system has one of these modules

            os.lseek(file.fileno(), 0, os.SEEK_SET)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def locked(path: Path, taken: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """
    Hold the lock of a file, which is a file of its own beside it; blocks for ``wait_s`` seconds at most.

    :raises Conflict: another program holds it, with the sentence ``taken``; :raises OSError: it cannot be made
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    last = time.monotonic() + wait_s
    with open(path.with_name(f".{path.name}.lock"), "ab", opener=private_opener) as file:
        while not try_lock(file):
            if time.monotonic() >= last:
                raise Conflict(taken)
            time.sleep(_STEP_S)
        yield
