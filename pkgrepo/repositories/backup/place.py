"""
Where backups are: a folder or a bucket.

==================================  ====================================================================
``content/``                        a blob store: each blob once, and the copies of the catalog
``backups/<time>.<digest>.json``    the manifest of one backup, written last; see L{manifests}
``keys/<time>.key``                 the key of the server, only if it is to be in the backup
``lock``                            in a folder: held by the process that writes
==================================  ====================================================================

A folder that is made here can be entered only by its owner, and files that hold secrets have mode 0600.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar
from uuid import NAMESPACE_OID, uuid5

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import BlobMissing, Conflict, NotFound
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo
from pkgrepo.s3.bucket import Bucket
from pkgrepo.s3.places import Destination
from pkgrepo.s3.requests import digest_body
from pkgrepo.small_files import OWNER_ONLY, fsync_path, replace_file
from pkgrepo.storage.blobs.durability import storage_error
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.process_lock import Lease

P = ParamSpec("P")
T = TypeVar("T")

CONTENT: Final = "content"
FOLDERS: Final = ("backups", "keys")
_NAME: Final = re.compile(r"(backups|keys)/[A-Za-z0-9][A-Za-z0-9.-]{0,120}")


class Place(Protocol):
    """An open place. Names of files are those of the table above; every method raises ``StorageFailed`` on failure."""

    @property
    def address(self) -> str:
        """Where it is, for people."""

    @property
    def store(self) -> IBlobStore:
        """The store of its blobs."""

    @property
    def store_id(self) -> str:
        """The id that the store has, which is that of one server; see L{content_id}."""

    async def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, sorted, with the folder."""

    async def read(self, name: str) -> bytes:
        """The content of a file. :raises NotFound: there is none"""

    async def write(self, name: str, data: bytes) -> None:
        """Make a file with this content, durable and at once, which only the owner can read; it is new."""

    async def remove(self, name: str) -> None:
        """Remove a file; none is fine."""

    async def hide(self, info: BlobInfo) -> None:
        """Let only the owner read a blob of the store."""

    async def close(self) -> None:
        """Need it no more."""


def content_id(server: str) -> str:
    """The id of the store in a place with the backups of a server, by the id of that."""
    return str(uuid5(NAMESPACE_OID, f"{server} backup"))


async def open_place(
    destination: Destination, pools: Pools, *, uid: str | None, scratch: Path, low_water: int | None, writes: bool
) -> Place:
    """
    Open a place; ``uid`` is the id of its blob store (None: any). With ``writes`` an empty one is made.

    ``scratch`` is a folder for temporary files of buckets.

    :raises Conflict: it holds other things, or backups of another server, or another process writes there
    :raises NotFound: there are no backups; :raises StorageFailed: it cannot be used
    """
    bucket = destination.bucket
    if bucket is None:
        folder = FolderPlace(Path(destination.address).absolute(), pools, uid, low_water)
        await folder.open(writes=writes)
        return folder
    await pools.disk(scratch.mkdir, 0o700, parents=True, exist_ok=True)
    spool = Spool(scratch, low=low_water)
    content = evolve(bucket, prefix=f"{bucket.prefix}{CONTENT}/")
    store = BucketBlobStore(content, name=f"backup in {destination.address}", pools=pools, spool=spool, uid=uid)
    await store.start(create=writes)
    return ObjectsPlace(destination.address, store, store.beside(bucket.prefix))


class FolderPlace:
    """A place in a folder."""

    def __init__(self, folder: Path, pools: Pools, uid: str | None, low_water: int | None) -> None:
        self.address = str(folder)
        self._folder = folder
        self._pools = pools
        self._lease = Lease(folder / "lock")
        self.store = FilesystemBlobStore(
            folder / CONTENT,
            name=f"backup in {folder}",
            pools=pools,
            uid=uid,
            low_water=low_water,
            found_by_name=True,
        )

    async def open(self, *, writes: bool) -> None:
        """Check or make the folder, and lock it for writing. :raises Conflict: or what ``open_place`` raises"""
        try:
            await self._pools.disk(self._prepare, writes=writes)
        except OSError as error:
            raise storage_error(self.store.name, error) from error
        try:
            await self.store.start(create=writes)
        except BaseException:
            self._lease.release()
            raise

    @property
    def store_id(self) -> str:
        """The id that the store of the blobs has."""
        return self.store.uid or ""

    async def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, sorted, with the folder."""
        return await self._call(self._list, folder)

    async def read(self, name: str) -> bytes:
        """The content of a file. :raises NotFound: there is no such file"""
        try:
            return await self._pools.disk(self._path(name).read_bytes)
        except FileNotFoundError:
            raise NotFound("file of a backup", name) from None
        except OSError as error:
            raise storage_error(self.store.name, error) from error

    async def write(self, name: str, data: bytes) -> None:
        """Make a file with this content, which only the owner can read."""
        await self._call(replace_file, self._path(name), data, OWNER_ONLY)

    async def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        await self._call(self._remove, self._path(name))

    async def hide(self, info: BlobInfo) -> None:
        """Let only the owner read a blob of the store."""
        await self._call(self.store.paths.blob(info.locator).chmod, 0o400)

    async def close(self) -> None:
        """Give up the lock, or the connections."""
        self._lease.release()

    async def _call(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._pools.disk(func, *args, **kwargs)
        except OSError as error:
            raise storage_error(self.store.name, error) from error

    def _prepare(self, *, writes: bool) -> None:
        if not writes:
            if not (self._folder / CONTENT).is_dir():
                raise NotFound("backup in the folder", self.address)
            return
        known = {CONTENT, "lock", *FOLDERS}
        if self._folder.is_dir() and not (self._folder / CONTENT).is_dir():
            foreign = sorted(each.name for each in self._folder.iterdir() if each.name not in known)
            if foreign:
                raise Conflict(f"{self._folder} holds other things already, such as {foreign[0]!r}")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._lease.acquire():
            raise Conflict(f"another process writes a backup to {self._folder}")
        for name in FOLDERS:
            (self._folder / name).mkdir(mode=0o700, exist_ok=True)
        fsync_path(self._folder)

    def _list(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            names = sorted(f"{folder}/{each.name}" for each in (self._folder / folder).iterdir())
            return [name for name in names if _NAME.fullmatch(name)]
        return []

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        fsync_path(path.parent)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise NotFound("file of a backup", name)
        return self._folder / name


class ObjectsPlace:
    """A place in a bucket."""

    def __init__(self, address: str, store: BucketBlobStore, objects: Bucket) -> None:
        self.address = address
        self.store = store
        self._objects = objects

    @property
    def store_id(self) -> str:
        """The id that the store of the blobs has."""
        return self.store.uid or ""

    async def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, sorted, with the folder."""
        return [each.key async for each in self._objects.iterate(f"{folder}/") if _NAME.fullmatch(each.key)]

    async def read(self, name: str) -> bytes:
        """The content of a file. :raises NotFound: there is no such file"""
        try:
            async with self._objects.get(name) as incoming:
                return b"" if incoming is None else await incoming.read()
        except BlobMissing:
            raise NotFound("file of a backup", name) from None

    async def write(self, name: str, data: bytes) -> None:
        """Make a file with this content, which only the owner can read."""
        await self._objects.put(name, digest_body(data))

    async def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        await self._objects.delete(name)

    async def hide(self, info: BlobInfo) -> None:
        """Objects have the rights of their bucket."""

    async def close(self) -> None:
        """Give up the lock, or the connections."""
        await self.store.stop()
