"""Replaces a small file atomically and durably: readers, also after a crash, find the old content or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


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


def fsync_path(path: Path) -> None:
    """Make a file durable, or the names in a directory. Blocks. :raises OSError: they may be lost"""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
