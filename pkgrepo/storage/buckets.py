"""
The buckets of storages: what the catalog keeps of them, and their blob stores.

The secret of an access key is sealed for its endpoint, bucket and id, so that it cannot be sent to another server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Conflict, SecretUnreadable, StorageFailed
from pkgrepo.model import Storage
from pkgrepo.s3.places import AccessKey, BucketPlace
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.secret_box import SecretBox

log = Logger()

KIND = "S3"  # of such a storage, in the catalog and in the API


@frozen(kw_only=True)
class StorageBuckets:
    """
    Opens the storages in buckets; their temporary files are in the folder ``spool``.

    No upload begins while fewer than ``low_water`` bytes are free there; None for the default mark.
    """

    secrets: SecretBox
    pools: Pools
    spool: Path
    low_water: int | None

    def settings(self, place: BucketPlace) -> dict[str, Any]:
        """Return what the catalog keeps of a place."""
        key = place.key
        found: dict[str, Any] = {
            "endpoint": place.endpoint,
            "bucket": place.bucket,
            "region": place.region,
            "prefix": place.prefix,
            "path_style": place.path_style,
            "readable_layout": False,
        }
        if place.redirect_from:
            found["redirect_from"] = place.redirect_from
        if place.ca_file:
            found["ca_file"] = place.ca_file
        if key is not None:
            found["access_key_id"] = key.id
            found["sealed"] = self.secrets.seal(key.secret, _context(place.endpoint, place.bucket, key.id))
        return found

    def place(self, name: str, settings: Mapping[str, Any]) -> BucketPlace:
        """
        Return the place that the catalog keeps for the storage ``name``.

        :raises Conflict: the secret cannot be decrypted
        """
        endpoint, bucket, key_id = settings["endpoint"], settings["bucket"], settings.get("access_key_id")
        try:
            key = (
                None
                if key_id is None
                else AccessKey(key_id, self.secrets.open(settings["sealed"], _context(endpoint, bucket, key_id)))
            )
        except SecretUnreadable:
            raise Conflict(
                f"the access key of storage {name!r} is not sealed with this server's key; set it again"
            ) from None
        return BucketPlace(
            endpoint=endpoint,
            bucket=bucket,
            region=settings["region"],
            prefix=settings["prefix"],
            path_style=settings["path_style"],
            key=key,
            redirect_from=settings.get("redirect_from", 0),
            ca_file=settings.get("ca_file", ""),
        )

    async def open(self, storage: Storage) -> BucketBlobStore:
        """
        Open the store of a storage.

        :raises Conflict: its place is of another storage, or missing; :raises StorageFailed: it does not answer, or its
            access key cannot be decrypted
        """
        try:
            place = self.place(storage.name, storage.settings)
        except Conflict as error:
            # An operator can only set it again if the server starts.
            log.warn("{error}", error=str(error))
            raise StorageFailed(storage.name) from error
        return await self._open(place, storage.name, storage.uid, create=False)

    async def make(self, name: str, place: BucketPlace, uid: str) -> BucketBlobStore:
        """
        Take a place, which is empty or has the storage with this id, for a storage. Returns its store.

        :raises Conflict: it is of another storage, or not empty; :raises StorageFailed: it does not answer
        """
        return await self._open(place, name, uid, create=True)

    async def _open(self, place: BucketPlace, name: str, uid: str, *, create: bool) -> BucketBlobStore:
        await self.pools.disk(self.spool.mkdir, 0o700, parents=True, exist_ok=True)
        spool = Spool(self.spool, low=self.low_water)
        store = BucketBlobStore(place, name=name, pools=self.pools, spool=spool, uid=uid)
        await store.start(create=create)
        return store


def address_of(settings: Mapping[str, Any]) -> str:
    """Return where a storage in a bucket is, for people."""
    return f"{settings['endpoint']}/{settings['bucket']}/{settings['prefix']}"


def _context(endpoint: str, bucket: str, key_id: str) -> str:
    return f"storage {endpoint} {bucket} {key_id}"
