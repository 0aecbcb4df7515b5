"""
Getting bytes and names onto the disk, and what the disk says when it will not.

All of it blocks and belongs on the disk threads.
"""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Literal

from pkgrepo.diagnostics.descriptors import is_out_of_descriptors
from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull, TooManyOpenFiles

from .syscalls import start_writeback

Fsync = Literal["always", "never"]

_FULL = {errno.ENOSPC, errno.EDQUOT}


def storage_error(storage: str, error: OSError) -> PkgrepoError:
    """The domain's word for what a file call said: no room, no file descriptor, or a failed device."""
    if is_out_of_descriptors(error):
        return TooManyOpenFiles(storage)
    return StorageFull(storage) if error.errno in _FULL else StorageFailed(storage)


class Durability:
    """
    fsync of files and directories, or nothing at all with ``never`` (for tests, and for data that may be lost).

    An error is final for that file: Linux may mark the lost pages clean, and a second fsync would then report success.
    """

    def __init__(self, fsync: Fsync) -> None:
        self._always = fsync == "always"
        self._lock = threading.Lock()
        self._waiting: dict[Path, Future[None]] = {}
        self._turns: dict[Path, threading.Lock] = {}

    def sync_data(self, fd: int) -> None:
        """
        Make a file's bytes and length durable.

        :raises OSError: they are not, and this descriptor is to be given up
        """
        if self._always:
            os.fdatasync(fd)

    def start_writeback(self, fd: int) -> None:
        """Have the disk begin to write a file's bytes, to wait for them later; only a hint."""
        if self._always:
            start_writeback(fd)

    def sync_directory(self, path: Path) -> None:
        """
        Make the names in a directory durable, as they were when this was called.

        For directories that stay and that many use; ``sync_own_directory`` is for the others. Callers that come while
        an fsync of the directory runs share the next one: the running one may have begun before their name was there.

        :raises OSError: they may be lost; every caller of a shared fsync gets it
        """
        if not self._always:
            return
        mine: Future[None] = Future()
        with self._lock:
            shared = self._waiting.get(path)
            if shared is None:
                self._waiting[path] = mine
            turn = self._turns.setdefault(path, threading.Lock())
        if shared is not None:
            shared.result()
            return
        with turn:
            with self._lock:
                del self._waiting[path]
            try:
                _fsync_directory(path)
            except OSError as error:
                mine.set_exception(error)
                raise
            mine.set_result(None)

    def sync_own_directory(self, path: Path) -> None:
        """
        Make the names in a directory durable that only the caller uses.

        :raises OSError: they may be lost
        """
        if self._always:
            _fsync_directory(path)


def _fsync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
