"""
fsync and other system calls on files and directories, and the domain errors for failed file calls.

All of it blocks, so call it on the disk threads; only L{read_cached} never waits. Calls that only Linux has do without
on other systems.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull, TooManyOpenFiles
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.small_files import fsync_path, write_at

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h
_PUNCH_HOLE = 2  # FALLOC_FL_PUNCH_HOLE, which needs the flag above
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_LIBC = ctypes.CDLL(None, use_errno=True)
_FALLOCATE = getattr(_LIBC, "fallocate64", None) or getattr(_LIBC, "fallocate", None)
if _FALLOCATE is not None:
    _FALLOCATE.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_WRITE = 2  # SYNC_FILE_RANGE_WRITE of linux/fs.h
_SYNC_RANGE = getattr(_LIBC, "sync_file_range", None)
if _SYNC_RANGE is not None:
    _SYNC_RANGE.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_SYNC_FS = getattr(_LIBC, "syncfs", None)
if _SYNC_FS is not None:
    _SYNC_FS.argtypes = (ctypes.c_int,)
_DIRTY = re.compile(rb"^(?:Dirty|Writeback): +(\d+) kB$", re.MULTILINE)


# Their syncfs is one commit of the journal. That of btrfs writes trees, and that of overlayfs may lose errors.
_JOURNALS: Final = frozenset({"ext4", "xfs"})
_REPORTS_ERRORS: Final = (5, 8)  # before this release of Linux, syncfs did not report bytes that could not be written
_OTHERS_KIB: Final = 16384  # of dirty memory, which most disks write in 0.1 s; while syncfs is called, little is dirty

DIRTY_AGE_S: Final = 0.05  # seconds for which that is known

Fsync = Literal["always", "never"]
_FULL = {errno.ENOSPC, errno.EDQUOT}


def sync_file_system(fd: int) -> None:
    """
    Make everything durable that was written to the file system of a descriptor (syncfs, else sync).

    :raises OSError: something could not be written; since Linux 5.8 also if that happened after the last call
    """
    if _SYNC_FS is None:
        os.sync()
    elif _SYNC_FS(fd):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def has_quick_syncfs(folder: Path) -> bool:
    """Whether syncfs of a folder's file system reports all errors, and is faster than fsync of several files."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if _SYNC_FS is None or release is None or (int(release[1]), int(release[2])) < _REPORTS_ERRORS:
        return False
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    # proc(5): the device is the third field, the type of the file system the first one after a hyphen
    types = {line.partition(" - ")[2].split(" ")[0] for line in mounts.splitlines() if line.split(" ")[2] == number}
    return bool(types) and types <= _JOURNALS


def is_little_dirty() -> bool:
    """Whether all programs of this machine together have few bytes in memory that are to be written to disks."""
    try:
        with open("/proc/meminfo", "rb", buffering=0) as file:
            found = _DIRTY.findall(file.read(2048))
    except OSError:
        return False
    return len(found) == 2 and sum(map(int, found)) <= _OTHERS_KIB


def reserve(fd: int, size: int) -> None:
    """
    Reserve disk space for the first ``size`` bytes of a file, whose length stays (fallocate); a no-op if unsupported.

    ``os.posix_fallocate`` is not used: if the file system cannot reserve space, libc writes to every block instead.

    :raises OSError: the disk or the quota is full
    """
    if _FALLOCATE is None:
        return
    while _FALLOCATE(fd, _KEEP_SIZE, 0, size):
        code = ctypes.get_errno()
        if code in _UNSUPPORTED:
            return
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def forget(fd: int, start: int, count: int) -> None:
    """Free the disk space of some bytes, which are zeros from then on; a no-op if unsupported."""
    if _FALLOCATE is not None:
        _FALLOCATE(fd, _KEEP_SIZE | _PUNCH_HOLE, start, count)


def start_writeback(fd: int) -> None:
    """
    Start writing a file's dirty pages to the disk without waiting (sync_file_range); a no-op if unsupported.

    Nothing is durable by it. An error is reported again by the fdatasync that must follow.
    """
    if _SYNC_RANGE is not None:
        _SYNC_RANGE(fd, 0, 0, _WRITE)


def forget_pages(fd: int) -> None:
    """Have the next read of a file ask the disk rather than the page cache; a no-op if unsupported."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def memory_file(data: bytes) -> int:
    """Return a descriptor of an unnamed file with these bytes, in memory if supported (memfd_create)."""
    fd = os.memfd_create("bytes") if hasattr(os, "memfd_create") else _unnamed_file()
    try:
        write_at(fd, data, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def link_descriptor(fd: int, target: str) -> None:
    """
    Link an open file, also an unnamed one, as ``target`` (linkat).

    :raises FileExistsError: the name exists; :raises OSError: another file system, or no /proc
    """
    # With a directory descriptor os.link uses linkat and follows the link in /proc; without, it would not follow.
    os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)


def read_cached(fd: int, start: int, count: int) -> bytes | None:
    """
    Return up to ``count`` bytes from ``start`` if the page cache has them, else None (preadv2 with RWF_NOWAIT).

    Never waits for the disk, so the reactor's thread may call it. Empty bytes mean the end of the file.
    """
    if _NOWAIT is None:
        return None
    buffer = bytearray(count)
    try:
        got = os.preadv(fd, [buffer], start, _NOWAIT)
    except OSError:
        # Not cached, or a file system without the flag; a real error is raised again by the read that may wait.
        return None
    return bytes(buffer) if got == count else bytes(memoryview(buffer)[:got])


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def storage_error(storage: str, error: OSError) -> PkgrepoError:
    """Return the domain error for an error of a file call: full disk, no file descriptor, or failed device."""
    if is_out_of_descriptors(error):
        return TooManyOpenFiles(storage)
    return StorageFull(storage) if error.errno in _FULL else StorageFailed(storage)


@contextmanager
def reading(storage: str) -> Iterator[None]:
    """
    A block that reads stored bytes by a descriptor, itself or in what it awaits.

    :raises StorageFailed: a call has failed; an error of a library about the bytes, which has no number, passes
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise storage_error(storage, error) from error


class Durability:
    """
    Calls fsync on files and directories, or does nothing with ``never`` (for tests, and for data that may be lost).

    After an error the file must be given up: Linux may mark the lost pages clean, and a second fsync then succeeds.
    """

    def __init__(self, fsync: Fsync) -> None:
        self._always = fsync == "always"
        self._whole: Path | None = None
        self._look_at = 0.0  # when it is looked again whether others write little
        self._little = False
        self._lock = threading.Lock()
        self._waiting: dict[Path, Future[None]] = {}
        self._locks: dict[Path, threading.Lock] = {}

    def sync_data(self, fd: int) -> None:
        """
        Make a file's bytes and length durable.

        :raises OSError: they are not durable, and the file must be given up
        """
        if self._always:
            os.fdatasync(fd)

    def start_writeback(self, fd: int) -> None:
        """Start writing a file's bytes to the disk without waiting; ``sync_data`` must follow."""
        if self._always:
            start_writeback(fd)

    def prepare(self, root: Path) -> None:
        """Find out how what is below a folder is made durable. Blocks. :raises OSError: there is no such folder"""
        self._whole = root if self._always and has_quick_syncfs(root) else None

    def prefers_whole(self) -> bool:
        """Whether ``sync_whole`` is faster now than fsync of several files; never waits."""
        if self._whole is None:
            return False
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at, self._little = now + DIRTY_AGE_S, is_little_dirty()
        return self._little

    def open_whole(self) -> int | None:
        """
        Return a descriptor for ``sync_whole``, which the caller closes; None where it is never used.

        :raises OSError: the folder cannot be opened
        """
        return None if self._whole is None else os.open(self._whole, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync_whole(self, fd: int) -> None:
        """
        Make all durable that the file system has, by a descriptor that was opened before it was written.

        :raises OSError: something is not durable, and all files must be given up
        """
        sync_file_system(fd)

    def sync_directory(self, path: Path) -> None:
        """
        Make the names durable that a shared directory has when this is called.

        Callers that arrive while an fsync of the directory runs share the next one, because the running fsync may have
        begun before their name was added. For directories of a single user see ``sync_own_directory``.

        :raises OSError: the names may be lost; every caller of a shared fsync gets the error
        """
        if not self._always:
            return
        mine: Future[None] = Future()
        with self._lock:
            shared = self._waiting.get(path)
            if shared is None:
                self._waiting[path] = mine
            lock = self._locks.setdefault(path, threading.Lock())
        if shared is not None:
            shared.result()
            return
        with lock:
            with self._lock:
                del self._waiting[path]
            try:
                fsync_path(path)
            except OSError as error:
                mine.set_exception(error)
                raise
            mine.set_result(None)

    def sync_own_directory(self, path: Path) -> None:
        """
        Make the names durable in a directory that only the caller uses.

        :raises OSError: the names may be lost
        """
        if self._always:
            fsync_path(path)
