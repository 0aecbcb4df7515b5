"""
Small files that are replaced durably, or that hold secrets.

Readers of a replaced file, also after a crash, find the old content or the new one. Files with secrets have mode 0600,
whatever the umask and the folder.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

import msgspec

OWNER_ONLY = 0o600
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows passes no descriptors on


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """
    Replace the content of ``path``, with fsync of the file and its folder. Blocks.

    ``mode`` is that of the file, before the umask.

    :raises OSError: it could not be written; the old content is unchanged
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    fsync_path(path.parent)


def replace_private_json(path: Path, value: object) -> None:
    """
    Replace a file, or make it with its folder, by a value as JSON, which only the owner can read.

    :raises OSError: it cannot be written, and is unchanged
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n", OWNER_ONLY)


def write_at(descriptor: int, data: bytes | memoryview, start: int) -> None:
    """
    Write all bytes at an offset, in as many calls as it takes. Blocks.

    :raises OSError: they are not all written; also if calls write nothing
    """
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, start)
        if not written:
            raise OSError(errno.EIO, "a write has written nothing")
        rest, start = rest[written:], start + written


def fsync_path(path: Path) -> None:
    """Make a file durable, or the names in a directory. Blocks. :raises OSError: they may be lost"""
    if os.name == "nt" and path.is_dir():  # Windows opens no directories; NTFS keeps names in its journal
        return
    descriptor = os.open(path, os.O_RDONLY | _CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private_opener(path: str, flags: int) -> int:
    """The ``opener`` for ``open`` that gives new files mode 0600; an existing file keeps its mode."""
    return os.open(path, flags, OWNER_ONLY)


def ensure_private(path: Path) -> None:
    """
    Create an empty file with mode 0600, or remove the rights of group and others from an existing one.

    An existing file is not opened: closing it would drop the locks that SQLite holds on it in this process.

    :raises OSError: it cannot be created
    """
    try:
        os.close(private_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC))
    except FileExistsError:
        tighten(path)


def tighten(path: Path) -> None:
    """
    Remove the rights of group and others from a regular file.

    A device, a pipe, a missing file, a file of another owner, and one that is mounted read-only are left as they are.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            path.chmod(stat.S_IMODE(mode) & 0o700)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EPERM, errno.EACCES, errno.EROFS):
            raise
