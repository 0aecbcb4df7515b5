"""
fsync of files and directories, and the domain errors for failed file calls.

All of it blocks, so call it on the disk threads.
"""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Literal

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull, TooManyOpenFiles
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.storage.durable_file import fsync_path

from .syscalls import start_writeback

Fsync = Literal["always", "never"]

_FULL = {errno.ENOSPC, errno.EDQUOT}


def storage_error(storage: str, error: OSError) -> PkgrepoError:
    """Return the domain error for an error of a file call: full disk, no file descriptor, or failed device."""
    if is_out_of_descriptors(error):
        return TooManyOpenFiles(storage)
    return StorageFull(storage) if error.errno in _FULL else StorageFailed(storage)


class Durability:
    """
    Calls fsync on files and directories, or does nothing with ``never`` (for tests, and for data that may be lost).

    After an error the file must be given up: Linux may mark the lost pages clean, and a second fsync then succeeds.
    """

    def __init__(self, fsync: Fsync) -> None:
        self._always = fsync == "always"
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
