"""
Lock files: which processes use a folder, which one of them does the work of one at a time, and leases of names.

Each process holds a shared ``flock`` on one file in the folder; the kernel releases it when the process ends. A process
that could get it exclusively first knows that older temporary files have no owner.

Leases of names are locks of single bytes of one file (``F_OFD_SETLK``, fcntl(2)), at offsets that are hashes of the
names. So a name costs no file and nothing on the disk, and the kernel releases the leases of a process that ends. Two
names with one hash share a lease, which only delays one of them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from errno import EACCES, EAGAIN
from hashlib import blake2b
from pathlib import Path

from pkgrepo.small_files import OWNER_ONLY, tighten

NAME = "in-use"
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # of the running kernel, on Linux: proc_sys_kernel(5)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def boot_id() -> str:
    """What tells this start of the machine from others. :raises OSError: it is not known"""
    return _BOOT.read_text().strip()


_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, process


class ProcessLock:
    """Marks a folder as used by this process. Every method blocks."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._descriptor: int | None = None

    def acquire(self) -> datetime | None:
        """
        Take the shared lock. Returns since when this process was the only one, or None if others may hold it.

        The time is the file system's: any file written later has this modification time or a later one, however coarse
        the file system's clock is. Where locks cannot be had the response is None.
        """
        try:
            self._descriptor = _open(self._path)
        except OSError:
            return None
        since = None
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(self._descriptor)
            # Rounded down: a file that is written in the same microsecond must not look older.
            since = EPOCH + timedelta(microseconds=os.fstat(self._descriptor).st_mtime_ns // 1000)
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            return since
        return None

    @property
    def is_open(self) -> bool:
        """Whether the lock file is open, locked or not."""
        return self._descriptor is not None

    def is_locked(self) -> bool:
        """Whether any process holds the lock. Takes no lock itself and does not create the file."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.EWOULDBLOCK
        finally:
            os.close(descriptor)
        return False

    def leave(self) -> bool:
        """
        Release the lock, unless this process is the last one that holds it. Returns whether it is.

        Of several that leave at the same time, one is the last one. It still holds the lock, until L{release}.
        """
        if self._descriptor is not None:
            with suppress(OSError):
                # The kernel gives up the shared lock first, and does not return it if others hold theirs (flock(2)).
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(self._descriptor, fcntl.LOCK_SH)
                return True
        return False

    def release(self) -> None:
        """Release the lock; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class Lease:
    """
    The right to do what one process at a time may do: an exclusive lock on the file ``path``.

    The kernel releases it when the process ends. No method waits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lease. Returns False if another process has it; where locks cannot be had, True."""
        if self._descriptor is not None:
            return True
        try:
            descriptor = _open(self._path)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                os.close(descriptor)
                return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lease; also twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _open(path: Path) -> int:
    """Open a lock file, which is made if needed; other users cannot hold up the owner by a lock."""
    tighten(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)


class KeyLeases:
    """
    The leases of all processes that use the file at ``path``, as this process takes them.

    The file is made when it is needed. No method waits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._held: set[int] = set()
        self._marks: set[str] = set()
        self._closed = False

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
        """Release a lease that was taken; one that ``close`` has released, before what it was for has ended, also."""
        offset = number_of(name)
        if self._closed and offset not in self._held:
            return
        self._held.remove(offset)
        with suppress(OSError):
            self._set(fcntl.F_UNLCK, offset)

    def mark_alive(self) -> str:
        """
        Take a name of this process, which it holds until it ends, and return it; see L{is_over}.

        The name says on which file it is held, as this machine has it. Where locks cannot be had it says nothing.
        """
        name = secrets.token_hex(8)
        try:
            marked = f"{self._place()}-{name}"
            self._set(fcntl.F_WRLCK, number_of(marked))
        except OSError:
            return name
        self._marks.add(marked)
        return marked

    def is_over(self, name: str) -> bool:
        """Whether the process that has marked itself so has ended, as far as is known: False of another machine's."""
        place, dash, _ = name.rpartition("-")
        try:
            if not dash or name in self._marks or place != self._place():  # one's own locks are not in one's way
                return False
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, number_of(name), 1, 0)
            found: int = struct.unpack(_FLOCK, fcntl.fcntl(self._open(), fcntl.F_OFD_GETLK, asked))[0]
        except OSError:
            return False
        return found == fcntl.F_UNLCK

    def _place(self) -> str:
        """What tells the lock file from all others, also those of other machines. :raises OSError: it is not known"""
        status = os.fstat(self._open())
        return f"{boot_id()}-{status.st_dev:x}-{status.st_ino:x}"

    def close(self) -> None:
        """Release all leases, and the names of this process; also twice."""
        self._closed = True
        self._held.clear()
        self._marks.clear()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _set(self, kind: int, offset: int) -> None:
        fcntl.fcntl(self._open(), fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, offset, 1, 0))

    def _open(self) -> int:
        if self._descriptor is None:
            tighten(self._path)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        return self._descriptor


def number_of(name: str) -> int:
    """The number of a name, of 62 bits."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 2
