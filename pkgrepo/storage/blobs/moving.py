"""
The blob store of a storage whose copies are being moved from a folder to a bucket, or back.

New bytes go to the new place. A copy is read from the place that has it: the folder says at once whether it does. An
upload that was suspended before the move goes on in the old place, and its copy is moved later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias
from weakref import WeakSet

from zope.interface import implementer

from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import IBlob, IBlobStore, IBlobUpload

from .filesystem import FilesystemBlobStore
from .s3.store import BucketBlobStore

AnyStore: TypeAlias = FilesystemBlobStore | BucketBlobStore


@implementer(IBlobStore)
class MovingBlobStore:
    """The copies of one storage in two places, of which one is a folder: the ``old`` one, and the ``new`` one."""

    has_files = False
    growing = None
    addresses = None

    def __init__(self, old: AnyStore, new: AnyStore) -> None:
        self.old = old
        self.new = new
        is_folder = isinstance(new, FilesystemBlobStore)
        self._folder: AnyStore = new if is_folder else old
        self._other: AnyStore = old if is_folder else new
        # Those of the old place; an upload that is given up leaves it without notice.
        self._resumed: WeakSet[IBlobUpload] = WeakSet()

    def begin(
        self, expect_size: int | None = None, algorithms: Sequence[str] = (), limit: int | None = None
    ) -> IBlobUpload:
        """Begin an upload to the new place; see L{IBlobStore}."""
        return self.new.begin(expect_size, algorithms, limit)

    async def resume(self, upload_id: str, state: bytes, abandoned: bool = False) -> IBlobUpload:
        """Continue an upload where it was suspended: each kind of store knows only its own states."""
        try:
            return await self.new.resume(upload_id, state, abandoned)
        except BlobMissing:
            upload: IBlobUpload = await self.old.resume(upload_id, state, abandoned)
        self._resumed.add(upload)
        return upload

    async def commit_together(self, uploads: Sequence[IBlobUpload]) -> None:
        """
        Commit sealed uploads; a failure leaves at most copies in the other place, which no row names.

        :raises StorageFailed: they cannot be stored
        """
        await self.old.commit_together([each for each in uploads if each in self._resumed])
        await self.new.commit_together([each for each in uploads if each not in self._resumed])

    def open(self, locator: str) -> IBlob:
        """Return a stored copy, wherever it is. :raises BlobMissing: it is nowhere"""
        try:
            return self._folder.open(locator)
        except BlobMissing:
            return self._other.open(locator)

    async def stat(self, locator: str) -> tuple[int, datetime] | None:
        """Return size in bytes and time of commit (aware UTC), or None if it does not exist."""
        return await self._folder.stat(locator) or await self._other.stat(locator)

    async def check(self, locator: str) -> None:
        """Make sure that both places are there. :raises StorageFailed: one is not"""
        await self.old.check(locator)
        await self.new.check(locator)

    async def delete(self, locator: str) -> None:
        """Delete a copy in either place."""
        await self._folder.delete(locator)
        await self._other.delete(locator)

    async def scan(self, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int, datetime]]:
        """Return copies in the new place: what no row names in the old one stays until that is removed as a whole."""
        return await self.new.scan(after, limit)

    async def sweep_uploads(self, older_than: datetime, keep: Iterable[str]) -> int:
        """Remove unfinished uploads in both places. Returns how many."""
        kept = set(keep)
        return await self.old.sweep_uploads(older_than, kept) + await self.new.sweep_uploads(older_than, kept)

    def capacity(self) -> tuple[int, int] | None:
        """Return free and total bytes of the new place; None for a bucket."""
        return self.new.capacity()

    def is_moved(self, locator: str) -> bool:
        """Whether a copy is in the new place; never waits for the network."""
        try:
            self._folder.open(locator)
        except BlobMissing:
            return self._folder is self.old
        return self._folder is self.new
