"""The blob stores that the contract suite and the fault tests run against."""

from __future__ import annotations

import atexit
import gc
import os
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from uuid import uuid4

from twisted.internet import reactor

from pkgrepo.concurrency.pools import Pools
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from tests.support.s3_servers import S3Server, s3_server


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


class BucketCase:
    """Stores over one prefix of a bucket; small parts make most bodies of the suite ones with several parts."""

    part_size = 5 * 1024 * 1024  # bytes, the least of the protocol

    def __init__(self, root: Path, *, kind: str = "versitygw") -> None:
        self.root = root
        self.kind = kind
        self.pools = Pools(reactor)
        self.prefix = f"{uuid4()}/"
        self.stores: list[BucketBlobStore] = []

    async def start(self) -> BucketBlobStore:
        self.pools.start()
        self.root.mkdir(parents=True, exist_ok=True)
        return await self.another()

    async def another(self) -> BucketBlobStore:
        """Return another store object on the same storage, like that of another node."""
        store = BucketBlobStore(
            shared_s3_server(self.kind).place(self.prefix),
            name="main",
            pools=self.pools,
            spool=Spool(self.root, low=0),
            part_size=self.part_size,
        )
        await store.start()
        self.stores.append(store)
        return store

    async def stop(self) -> None:
        for store in self.stores:
            await store.stop()
        await self.pools.stop()


@cache
def shared_s3_server(kind: str) -> S3Server:
    """A server for all tests of this process, until it ends."""
    stack = ExitStack()
    server = stack.enter_context(s3_server(kind=kind))
    atexit.register(stack.close)
    return server


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
