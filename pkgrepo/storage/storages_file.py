"""
Where the storages are, in a small file beside the database: what they hold is of no use to whoever cannot find them.

It is written whenever a storage is opened or removed, and read only when the catalog is built again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .durable_file import replace_file

NAME = "storages.json"


class StorageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A storage that a catalog had, by the id that its folder has too; ``path`` may be relative to the data folder."""

    uid: str
    name: str
    path: str


class StoragesFile:
    """The file in ``folder``. Every method blocks; several processes may use it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def list(self) -> list[StorageEntry]:
        """
        What is known, by name; nothing where there is no file, or none that makes sense.

        :raises OSError: it cannot be read
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[StorageEntry])
        except (FileNotFoundError, msgspec.MsgspecError):
            return []

    def add(self, storage: StorageEntry) -> None:
        """
        Know a storage, as it is now; those of an earlier catalog stay known.

        :raises OSError: it could not be written
        """
        self._change(lambda known: known | {storage.uid: storage})

    def remove(self, uid: str) -> None:
        """Know a storage no more. :raises OSError: it could not be written"""
        self._change(lambda known: {key: each for key, each in known.items() if key != uid})

    def _change(self, change: Callable[[dict[str, StorageEntry]], dict[str, StorageEntry]]) -> None:
        with _alone(self._path.parent):
            before = {each.uid: each for each in self.list()}
            after = change(before)
            if after == before:
                return
            listed = sorted(after.values(), key=lambda each: (each.name, each.uid))
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from changing the file meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
