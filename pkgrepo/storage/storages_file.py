"""
The file ``storages.json`` beside the database: which storages the catalog has, and where they are.

It is written when a storage is opened or removed. It is read only to rebuild a lost catalog.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .durable_file import replace_file

STORAGES_JSON = "storages.json"


class StorageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A storage; ``uid`` is also in its folder, ``path`` may be relative to the data folder."""

    uid: str
    name: str
    path: str


class StoragesFile:
    """The file in ``folder``. Every method blocks. A file lock serialises the changes of several processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STORAGES_JSON

    def list(self) -> list[StorageEntry]:
        """
        Return the storages, sorted by name; none if the file is missing or damaged.

        :raises OSError: it cannot be read
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[StorageEntry])
        except (FileNotFoundError, msgspec.MsgspecError):
            return []

    def add(self, storage: StorageEntry) -> None:
        """
        Add a storage, or replace its entry; entries of an earlier catalog stay.

        :raises OSError: it could not be written
        """
        self._change(lambda listed: listed | {storage.uid: storage})

    def remove(self, uid: str) -> None:
        """Remove a storage. :raises OSError: it could not be written"""
        self._change(lambda listed: {key: each for key, each in listed.items() if key != uid})

    def _change(self, change: Callable[[dict[str, StorageEntry]], dict[str, StorageEntry]]) -> None:
        with _exclusive_lock(self._path.parent):
            before = {each.uid: each for each in self.list()}
            after = change(before)
            if after == before:
                return
            listed = sorted(after.values(), key=lambda each: (each.name, each.uid))
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock the folder, so that no other process changes the file meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
