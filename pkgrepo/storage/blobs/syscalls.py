"""Linux file calls, each with what is done where they are missing."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h
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


def reserve(fd: int, size: int) -> None:
    """
    Room for ``size`` bytes from the start of the file, whose length stays as it is; nothing where that cannot be had.

    Not ``os.posix_fallocate``: where the file system cannot reserve, libc imitates it with a write to every block.

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


def start_writeback(fd: int) -> None:
    """
    Start to write what the page cache has of a file, without waiting for it; nothing where that cannot be had.

    It makes nothing durable. An error comes again from the fdatasync that has to follow.
    """
    if _SYNC_RANGE is not None:
        _SYNC_RANGE(fd, 0, 0, _WRITE)


def memory_file(data: bytes) -> int:
    """A descriptor of a file without a name that holds a few bytes, in memory where that can be had."""
    fd = os.memfd_create("bytes") if hasattr(os, "memfd_create") else _unnamed_file()
    os.write(fd, data)
    return fd


def link_descriptor(fd: int, target: str) -> None:
    """
    Give an open file, also one without any name, the name ``target``.

    :raises FileExistsError: the name is taken; :raises OSError: not on the same file system, or no /proc
    """
    # With a directory descriptor os.link uses linkat and follows the link in /proc; without, it would not follow.
    os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)


def read_cached(fd: int, start: int, count: int) -> bytes | None:
    """
    Up to ``count`` bytes from ``start`` when the page cache has them, else None.

    Never waits for the disk, so that the reactor's thread may call it. Empty bytes mean the end of the file.
    """
    if _NOWAIT is None:
        return None
    buffer = bytearray(count)
    try:
        got = os.preadv(fd, [buffer], start, _NOWAIT)
    except OSError:
        # Not cached, or a file system without the flag; a true error comes again from the read that may wait.
        return None
    return bytes(buffer) if got == count else bytes(memoryview(buffer)[:got])


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
