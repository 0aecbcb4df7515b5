"""Files that hold secrets: mode 0600, whatever the umask and the folder."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

OWNER_ONLY = 0o600


def private_opener(path: str, flags: int) -> int:
    """The ``opener`` of ``open`` which makes new files for their owner only; an existing one keeps its mode."""
    return os.open(path, flags, OWNER_ONLY)


def ensure_private(path: Path) -> None:
    """
    Make an empty file that only its owner can read, or take the rights of all others away from the one that is there.

    An existing file is not opened: closing it would drop the locks that SQLite holds on it in this process.

    :raises OSError: it cannot be made
    """
    try:
        os.close(private_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    except FileExistsError:
        tighten(path)


def tighten(path: Path) -> None:
    """
    Take the rights of group and others away from a regular file.

    Nothing happens to a device or pipe, to what has just gone, and to a file of another owner, who decides about it.
    """
    with suppress(FileNotFoundError, PermissionError):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            path.chmod(stat.S_IMODE(mode) & 0o700)
