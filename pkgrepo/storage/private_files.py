"""Files that hold secrets: mode 0600, whatever the umask and the folder."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

OWNER_ONLY = 0o600


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
        os.close(private_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    except FileExistsError:
        tighten(path)


def tighten(path: Path) -> None:
    """
    Remove the rights of group and others from a regular file.

    A device, a pipe, a missing file, and a file of another owner are left as they are.
    """
    with suppress(FileNotFoundError, PermissionError):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            path.chmod(stat.S_IMODE(mode) & 0o700)
