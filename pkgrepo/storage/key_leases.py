"""
Leases of names, each of which one process at a time has.

They are locks of single bytes of one file (``F_OFD_SETLK``, fcntl(2)), at offsets that are hashes of the names. So a
name costs no file and nothing on the disk, and the kernel releases the leases of a process that ends. Two names with
one hash share a lease, which only delays one of them.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from errno import EACCES, EAGAIN
from hashlib import blake2b
from pathlib import Path

from .private_files import OWNER_ONLY, tighten

_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, process


class KeyLeases:
    """
    The leases of all processes that use the file at ``path``, as this process takes them.

    The file is made when it is needed. No method waits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._held: set[int] = set()

    def acquire(self, name: str) -> bool:
        """Take a lease. Returns False if it is taken, also by this process; where locks cannot be had, True."""
        offset = number_of(name)
        if offset in self._held:
            return False
        try:
            self._set(fcntl.F_WRLCK, offset)
        except OSError as error:
            if error.errno in (EACCES, EAGAIN):
                return False
        self._held.add(offset)
        return True

    def release(self, name: str) -> None:
        """Release a lease that was taken."""
        offset = number_of(name)
        self._held.remove(offset)
        with suppress(OSError):
            self._set(fcntl.F_UNLCK, offset)

    def close(self) -> None:
        """Release all leases; also twice."""
        self._held.clear()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _set(self, kind: int, offset: int) -> None:
        if self._descriptor is None:
            tighten(self._path)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, offset, 1, 0))


def number_of(name: str) -> int:
    """The number of a name, of 62 bits."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 2
