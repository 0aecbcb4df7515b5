"""The blob stores that the contract suite and the fault tests run against."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from twisted.internet import reactor

from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.pools import Pools


class FilesystemCase:
    """Filesystem stores over one directory, like those of several workers; ``unnamed`` allows unnamed files."""

    def __init__(self, root: Path, *, unnamed: bool = True) -> None:
        self.root = root
        self.unnamed = unnamed
        self.pools = Pools(reactor)

    async def start(self) -> FilesystemBlobStore:
        self.pools.start()
        return await self.another()

    async def another(self) -> FilesystemBlobStore:
        """Return another store object on the same storage, like that of another worker."""
        store = FilesystemBlobStore(self.root, name="main", pools=self.pools, low_water=0)
        await store.start()
        store._unnamed = store._unnamed and self.unnamed
        return store

    async def stop(self) -> None:
        await self.pools.stop()


def open_descriptors() -> set[str]:
    """Return the open files of this process that belong to the store."""
    gc.collect()  # closes files that only reference cycles (of caught exceptions) keep open
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if "/uploads" in target or "/blobs" in target:
            found.add(target)
    return found
