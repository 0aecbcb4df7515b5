"""Buckets in requests: where they are, and the settings of storages there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.gateway.answers.content import SMALL
from pkgrepo.model import Storage
from pkgrepo.storage.blobs.s3.bucket import BucketFailed
from pkgrepo.storage.blobs.s3.settings import AccessKey, BucketPlace
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.buckets import StorageBuckets, address_of
from pkgrepo.untrusted.text import bytes_of

from .schema import StorageSettings

REDIRECT_FROM = "/settings/redirect_from"
CA_FILE = "/settings/ca_file"
LARGEST_SIZE = 2**50
REGION = "us-east-1"  # what servers of one region expect in signatures
SHOWN = ("endpoint", "bucket", "region", "prefix", "path_style", "access_key_id", "redirect_from", "ca_file")


class BucketSetup:
    """Makes places of what requests say; errors that a request can correct become L{Invalid}."""

    def __init__(self, buckets: StorageBuckets) -> None:
        self._buckets = buckets

    def place_of(self, settings: StorageSettings) -> BucketPlace:
        """The place that a request names for a new storage. :raises Invalid: something is missing, or does not fit"""
        if settings.endpoint is None or settings.bucket is None:
            raise Invalid("a storage of type S3 needs endpoint and bucket", "/settings")
        if settings.path is not None or settings.readable_layout:
            raise Invalid("a storage of type S3 has no path and no readable layout", "/settings")
        prefix = settings.prefix or ""
        return BucketPlace(
            endpoint=settings.endpoint,
            bucket=settings.bucket,
            region=settings.region or REGION,
            prefix=prefix if not prefix or prefix.endswith("/") else f"{prefix}/",
            path_style=settings.path_style is not False,
            redirect_from=_redirect_from(settings) or 0,
            ca_file=_ca_file(settings) or "",
            key=_key_of(settings),
        )

    async def make(self, name: str, place: BucketPlace, uid: str) -> BucketBlobStore:
        """Take the place for a storage. :raises Invalid: it cannot be used"""
        try:
            return await self._buckets.make(name, place, uid)
        except BucketFailed as error:
            raise Invalid(f"the bucket cannot be used: {error.reason}", "/settings") from error
        except Conflict as error:
            raise Invalid(f"the bucket cannot be used: {error}", "/settings") from error

    def changed(self, storage: Storage, settings: StorageSettings) -> BucketPlace | None:
        """
        The place after a request has changed it; None if it has not.

        :raises Invalid: the access key is missing, or does not fit
        :raises Conflict: the place cannot change like that
        """
        stored = storage.settings
        if any(
            given is not None and given != stored[name]
            for name, given in (("bucket", settings.bucket), ("prefix", settings.prefix))
        ):
            raise Conflict(f"storage {storage.name!r} is at {address_of(stored)}; its bucket and prefix cannot change")
        if settings.path is not None or settings.readable_layout:
            raise Invalid("a storage of type S3 has no path and no readable layout", "/settings")
        key = _key_of(settings)
        redirect_from, ca_file = _redirect_from(settings), _ca_file(settings)
        moved = settings.endpoint is not None and settings.endpoint != stored["endpoint"]
        if moved and key is None and stored.get("access_key_id") is not None:
            raise Invalid("another endpoint needs the access key again", "/settings/secret_access_key")
        before = self._buckets.place(storage.name, {**stored, "access_key_id": None} if key else stored)
        after = evolve(
            before,
            endpoint=settings.endpoint or before.endpoint,
            region=settings.region or before.region,
            path_style=before.path_style if settings.path_style is None else settings.path_style,
            key=key or before.key,
            redirect_from=before.redirect_from if redirect_from is None else redirect_from,
            ca_file=before.ca_file if ca_file is None else ca_file,
        )
        return None if after == before else after

    def same(self, storage: Storage, place: BucketPlace) -> bool:
        """Whether a storage is at this place."""
        stored = storage.settings
        return not storage.is_local and (stored["endpoint"], stored["bucket"], stored["prefix"]) == (
            place.endpoint,
            place.bucket,
            place.prefix,
        )

    def settings(self, place: BucketPlace) -> dict[str, Any]:
        """What the catalog keeps of a place."""
        return self._buckets.settings(place)


def check_local(settings: StorageSettings) -> None:
    """Check the settings of a storage in a folder. :raises Invalid: one is that of a bucket"""
    if settings.redirect_from is not None:
        raise Invalid("a storage of type Local has no redirect_from", REDIRECT_FROM)
    if settings.ca_file is not None:
        raise Invalid("a storage of type Local has no ca_file", CA_FILE)


def shown_settings(settings: Mapping[str, Any]) -> dict[str, str | bool | int]:
    """The settings of a storage in a bucket as people may see them."""
    shown = {name: settings[name] for name in SHOWN if settings.get(name) is not None}
    return {"path": address_of(settings), "readable_layout": False, **shown}


def _redirect_from(settings: StorageSettings) -> int | None:
    """From which size on, in bytes, clients are redirected. :raises Invalid: it is no such size"""
    if settings.redirect_from is None:
        return None
    size = bytes_of(settings.redirect_from)
    if size is None or size != int(size):
        raise Invalid("redirect_from is a size such as 64MiB; a bare number is bytes", REDIRECT_FROM)
    if size and not SMALL < size <= LARGEST_SIZE:
        raise Invalid("redirect_from is more than 64KiB, at most 1PiB, or 0 for never", REDIRECT_FROM)
    return int(size)


def _ca_file(settings: StorageSettings) -> str | None:
    """:raises Invalid: it is no absolute path"""
    path = settings.ca_file
    if path and (not path.startswith("/") or "\0" in path):
        raise Invalid("the path of a file on the server begins with a slash", CA_FILE)
    return path


def _key_of(settings: StorageSettings) -> AccessKey | None:
    """:raises Invalid: it has only one half"""
    if (settings.access_key_id is None) != (settings.secret_access_key is None):
        raise Invalid("an access key has an id and a secret", "/settings/secret_access_key")
    if settings.access_key_id is None or settings.secret_access_key is None:
        return None
    return AccessKey(settings.access_key_id, settings.secret_access_key)
