"""
The twin in a bucket.

An object is replaced at once, and one whose bytes stay the same is not written. While a round writes there is an object
``.twin/begun``: where a killed round has left one, only what is older counts as known. Bytes pass through temporary
files.

One process writes a twin at a time: it has made ``.twin/lock``, and writes that again while it lives. Of a killed one
the lock is free after ``LOCK_S``.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from pkgrepo.client.transfers.files import Draft
from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import BlobMissing, Conflict, DigestMismatch, Invalid, StorageFailed
from pkgrepo.s3.bucket import Bucket, BucketFailed
from pkgrepo.s3.parts import PART, PartSender
from pkgrepo.s3.places import Destination
from pkgrepo.s3.requests import Body, Requests, digest_body, make_requests
from pkgrepo.untrusted.signed_lists import Listed, Manifest, render_list

from .lists import (
    MANIFEST,
    OCTETS,
    STATE,
    check_path,
    list_path,
    read_list,
    read_manifest,
    render_manifest,
    signature_problems,
)

_NO_ADDRESS: Final = re.compile(r"answered (400|409)\b")  # to an object that is a folder as well
BEGUN: Final = f"{STATE}/begun"
LOCK: Final = f"{STATE}/lock"
LOCK_S: Final = 600  # since it was written last; the clocks of this machine and the store may differ by minutes
RENEW_S: Final = 60
TEXT: Final = "text/plain; charset=utf-8"


class BucketTwin:
    """
    The twin of ``repository`` below the prefix of a bucket, which is empty, or has this twin; see L{Twin}.

    With ``has_addresses`` it has objects at the addresses of folders, too, with which the bucket itself serves clients.
    """

    def __init__(self, place: _Place, repository: str, *, has_addresses: bool) -> None:
        self.has_addresses = has_addresses
        self.written = 0
        self._place = place
        self._repository = repository
        self._known: dict[str, Listed] = {}
        self._begun = False
        self._folder = tempfile.TemporaryDirectory(prefix="pkgrepo-twin-")

    @classmethod
    async def open(
        cls, reactor: Any, destination: Destination, repository: str, *, has_addresses: bool, renew: bool = False
    ) -> Self:
        """
        Open the bucket, and read what is there; with ``renew`` all of it is written again.

        :raises Conflict: it has other things, or cannot be used, or another process writes it
        :raises Invalid: its list is damaged, or its address; :raises StorageFailed: it does not answer
        """
        place = await _Place.open(reactor, destination)
        found = cls(place, repository, has_addresses=has_addresses)
        try:
            await found._check()
            await place.lock(reactor)
            await found._read(renew=renew)
        except BaseException:
            await found.close()
            raise
        return found

    def known(self, path: str, sha256: str) -> Listed | None:
        """The file at a path if it is there with this digest; else None."""
        found = self._known.get(path)
        return found if found is not None and found.sha256 == sha256 else None

    def draft(self, path: str) -> Draft:
        """Begin to write a file in a temporary one."""
        check_path(path.removesuffix("/"))
        return Draft(Path(self._folder.name) / hashlib.sha256(path.encode()).hexdigest(), replace=True)

    async def keep(self, path: str, draft: Draft, expected: str | None = None, content_type: str = OCTETS) -> Listed:
        """End a file, unless the twin has the same bytes. Returns size and digest."""
        found = Listed(draft.size, draft.sha256)
        if expected not in (None, found.sha256):
            raise DigestMismatch("sha256", str(expected), found.sha256)
        if self._known.get(path) != found:
            self._known.pop(path, None)
            await self._begin()
            try:
                await self._place.send(path, draft, found, content_type)
            except BucketFailed as error:
                if not self.has_addresses or not _NO_ADDRESS.search(error.reason):
                    raise
                reason = f"{error.reason}; --no-addresses is for stores that keep objects as files"
                raise BucketFailed(error.storage, reason) from None
            self.written += 1
            self._known[path] = found
        return found

    async def finish(self, files: Mapping[str, Listed]) -> str:
        """Write the list of all files. Returns its digest."""
        text = render_list(files)
        digest = hashlib.sha256(text).hexdigest()
        if self._begun or not await self.is_published(digest):
            await self._begin()
            await self._write(list_path(digest), text, TEXT)
        return digest

    async def publish(self, files: Mapping[str, Listed], digest: str, signed: Mapping[str, Any]) -> int:
        """Make a list that of the twin; returns how many files were removed."""
        await self._place.check_lock()
        manifest = render_manifest(self._repository, digest, len(files), signed)
        await self._write(MANIFEST, manifest, "application/json")
        removed = 0
        kept = {MANIFEST, LOCK, list_path(digest)}
        async for each in self._place.bucket.iterate(""):
            if each.key not in files and each.key not in kept:
                await self._place.bucket.delete(each.key)
                removed += not each.key.startswith(f"{STATE}/")
        self._begun = False
        self._known = dict(files)
        return removed

    async def is_published(self, digest: str) -> bool:
        """Whether this list is that of the twin already, and signed."""
        manifest = read_manifest(await self._place.read(MANIFEST), self._place.address)
        return manifest is not None and manifest.list_sha256 == digest and bool(manifest.signature) and not self._begun

    async def close(self) -> None:
        """Release what the twin holds here."""
        self._folder.cleanup()
        await self._place.close()

    async def _check(self) -> Manifest | None:
        """The manifest of this twin; None: it is new. :raises Conflict: there are other things"""
        place = self._place
        manifest = read_manifest(await place.read(MANIFEST), place.address)
        if manifest is None:
            begun = await place.bucket.stat(BEGUN)
            if begun is None and any(each.key != LOCK for each in await place.bucket.list_page("", limit=2)):
                raise Conflict(f"{place.address} holds other things already; a twin begins at an empty prefix")
            await place.check_outside()
        elif manifest.repository != self._repository:
            raise Conflict(f"{place.address} is the twin of {manifest.repository}")
        return manifest

    async def _read(self, *, renew: bool) -> None:
        """Note which files of the last list are there."""
        place, manifest = self._place, await self._check()
        begun = await place.bucket.stat(BEGUN)
        self._begun = begun is not None
        if manifest is None:
            return
        listed = {} if renew else await place.read_list(manifest)
        async for each in place.bucket.iterate(""):
            found = listed.get(each.key)
            if found is not None and found.size == each.size and (begun is None or each.modified_at < begun[1]):
                self._known[each.key] = found

    async def _begin(self) -> None:
        """Note that objects are replaced from now on."""
        if not self._begun:
            await self._write(BEGUN, b"", TEXT)
            self._begun = True

    async def _write(self, path: str, data: bytes, content_type: str) -> None:
        await self._place.bucket.put(path, digest_body(data), content_type)


async def verify_bucket(reactor: Any, destination: Destination, key: bytes | None) -> tuple[Manifest, list[str]]:
    """
    Read every object of a twin, and compare it with the list, and the list with its signature; see L{folder.verify}.

    :raises Conflict: the bucket cannot be used; :raises StorageFailed: it does not answer
    """
    place = await _Place.open(reactor, destination)
    try:
        manifest = read_manifest(await place.read(MANIFEST), place.address)
        if manifest is None:
            raise Invalid(f"{place.address} has no twin")
        problems = signature_problems(manifest, key)
        listed = await place.read_list(manifest)
        for path, each in listed.items():
            found = await place.digest(path)
            if found is None:
                problems.append(f"{path} is missing")
            elif found != each:
                problems.append(f"{path} has other bytes")
        async for stored in place.bucket.iterate(""):
            if stored.key not in listed and not stored.key.startswith(f"{STATE}/"):
                problems.append(f"{stored.key} is not in the list")
        return manifest, problems
    finally:
        await place.close()


class _Place:
    """The objects of a twin."""

    def __init__(self, address: str, requests: Requests, prefix: str, disk: Pool) -> None:
        self.address = address
        self.bucket = Bucket(requests, prefix=prefix, storage=address, replaces=True)
        self._requests = requests
        self._prefix = prefix
        self._disk = disk
        self._lock = b""
        self._renewal: LoopingCall | None = None
        self._renewed: Any = None  # fires when no renewal is under way or follows

    @classmethod
    async def open(cls, reactor: Any, destination: Destination) -> _Place:
        """:raises Invalid: the address is malformed; :raises Conflict: there are no credentials"""
        where, disk = destination.bucket, Pool(reactor, "bucket", 1)
        assert where is not None, "the address is that of a bucket"
        disk.start()
        try:
            requests = await make_requests(where, disk)
        except BaseException:
            await disk.stop()
            raise
        return cls(destination.address.rstrip("/"), requests, where.prefix, disk)

    async def lock(self, reactor: Any) -> None:
        """
        Be the only process that writes the twin, until ``close``.

        :raises Conflict: another one writes it, or was killed less than ``LOCK_S`` ago
        """
        owner = f"{socket.gethostname()}, process {os.getpid()}"
        mine = f"{owner}, {secrets.token_hex(8)}".encode()
        alone = Bucket(self._requests, prefix=self._prefix, storage=self.address)  # writes only what is not there
        found = await self.bucket.stat(LOCK)
        if found is not None and found[1] < datetime.now(UTC) - timedelta(seconds=LOCK_S):
            await self.bucket.delete(LOCK)
        await alone.put(LOCK, digest_body(mine), TEXT, same=False)
        # Where the store has no conditional writes, and where two have removed an old one, the last one has it.
        self._lock = mine
        await self.check_lock()
        self._renewal = LoopingCall(lambda: Deferred.fromCoroutine(self._renew(mine)))
        self._renewal.clock = reactor
        self._renewed = self._renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # ``check_lock`` tells

    async def _renew(self, mine: bytes) -> None:
        await self.check_lock()
        await self.bucket.put(LOCK, digest_body(mine), TEXT)

    async def check_lock(self) -> None:
        """:raises Conflict: another process writes the twin"""
        found = await self.read(LOCK)
        if found == self._lock:
            return
        self._lock = b""
        who = "" if found is None else f" ({found.decode('utf-8', 'replace').rpartition(', ')[0][:200]})"
        raise Conflict(
            f"another process{who} writes the twin in {self.address} now: try again when it has ended, or "
            f"{LOCK_S // 60} minutes after it was killed"
        )

    async def check_outside(self) -> None:
        """:raises Conflict: it lies in another twin, which would remove what its own list has not"""
        above = [f"{'/'.join(parts)}/" if parts else "" for parts in _parents(self._prefix)]
        for prefix in above:
            if await Bucket(self._requests, prefix=prefix, storage=self.address).stat(MANIFEST) is not None:
                raise Conflict(f"{self.address} is in the twin at {prefix or 'the top of the bucket'}")

    async def read(self, key: str) -> bytes | None:
        """A whole object, or None if there is none."""
        try:
            return b"".join([piece async for piece in self.bucket.read(key)])
        except BlobMissing:
            return None

    async def read_list(self, manifest: Manifest) -> dict[str, Listed]:
        """The list of the twin. :raises Invalid: it is missing or damaged"""
        return dict(read_list(await self.read(list_path(manifest.list_sha256)), manifest, self.address))

    async def digest(self, key: str) -> Listed | None:
        """The size and the digest of an object, or None if there is none."""
        found, size = hashlib.sha256(), 0
        try:
            async for piece in self.bucket.read(key):
                found.update(piece)
                size += len(piece)
        except BlobMissing:
            return None
        return Listed(size, found.hexdigest())

    async def send(self, key: str, draft: Draft, found: Listed, content_type: str) -> None:
        """Store an object, or replace it."""
        if found.size <= PART:
            await self.bucket.put(key, Body(draft.read(0, found.size), found.sha256), content_type)
            return

        async def read(start: int, count: int) -> Body:
            return digest_body(draft.read(start, count))

        async def digest(data: bytes) -> Body:
            return digest_body(data)

        sender = PartSender(self.bucket, key, read=read, digest=digest, content_type=content_type)
        try:
            await sender.complete(found.size)
        except BaseException:
            await sender.abort()
            raise

    async def close(self) -> None:
        """Let other processes write the twin, and close the connections."""
        try:
            if self._renewal is not None and self._renewal.running:
                self._renewal.stop()
                await self._renewed  # one that is under way would write the lock again
            if self._lock and await self.read(LOCK) == self._lock:
                await self.bucket.delete(LOCK)
        except StorageFailed:
            pass  # it ends by itself
        finally:
            await self._requests.stop()
            await self._disk.stop()


def _parents(prefix: str) -> list[list[str]]:
    parts = prefix.strip("/").split("/") if prefix else []
    return [parts[:count] for count in range(len(parts))]
