"""
The places of storages that requests name: folders and buckets.

Errors that a request can correct become L{Invalid}.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import evolve
from twisted.logger import Logger

from pkgrepo.errors import Conflict, Invalid, PkgrepoError, TooManyOpenFiles
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.gateway.responses.content import SMALL
from pkgrepo.management.api.call import Call
from pkgrepo.management.storages.schema import NewStorage, StorageSettings
from pkgrepo.model import Storage
from pkgrepo.s3.bucket import BucketFailed
from pkgrepo.s3.places import AccessKey, BucketPlace
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.buckets import StorageBuckets, address_of
from pkgrepo.storage.catalog.server import storages
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.untrusted.text import bytes_of

log = Logger()
REDIRECT_FROM = "/settings/redirect_from"
CA_FILE = "/settings/ca_file"
LARGEST_SIZE = 2**50
REGION = "us-east-1"  # what servers of one region expect in signatures
SHOWN = ("endpoint", "bucket", "region", "prefix", "path_style", "access_key_id", "redirect_from", "ca_file")


def folder_of(folders: StorageFolders, body: NewStorage) -> Path:
    """The folder that a request names for a new storage, or the default one."""
    given = body.path or body.settings.path or (body.config.settings.path if body.config else None)
    return folders.locate_new(body.name) if given is None else folders.locate(given)


async def check_free(call: Call, path: Path, storage: Storage | None) -> None:
    """
    Check that no storage but this one uses the folder.

    :raises Invalid: the path contains NUL; :raises Conflict: another storage uses the folder
    """
    if "\0" in str(path):
        raise Invalid("a path holds no NUL", "/settings/path")
    others = [each for each in call.registry.storages() if storage is None or each.id != storage.id]
    await call.shared.pools.disk(call.services.folders.check_free, path, others)


async def new_uid(call: Call, path: Path) -> str:
    """
    The id for a new storage: that in its folder, if the storage was made there before without success.

    :raises Invalid: the folder cannot be used
    """
    try:
        found = await call.shared.pools.disk(call.services.folders.find_empty, path)
    except (PkgrepoError, OSError) as error:
        raise _unusable(error) from error
    present = None if found is None else await call.catalog.look(storages.find_storage, found)
    return found if found is not None and present is None else str(uuid4())


async def make_folder(call: Call, name: str, path: Path, uid: str) -> dict[str, Any]:
    """Make the folder; the settings of a storage there. :raises Invalid: the folder cannot be used"""
    disk = call.shared.pools.disk
    try:
        await disk(call.services.folders.make, name, path, uid)
    except (PkgrepoError, OSError) as error:
        raise _unusable(error) from error
    return {"path": await disk(call.services.folders.spell, path)}


async def remove_from_list(call: Call, storage: Storage) -> None:
    """Take a removed storage out of ``storages.json``; a failure is logged."""
    try:
        await call.shared.pools.disk(call.services.folders.remove_from_list, storage.uid)
    except OSError as error:
        if not is_out_of_descriptors(error):
            log.failure("storage {storage} is gone, and stays noted in storages.json", storage=storage.name)


def _unusable(error: PkgrepoError | OSError) -> Exception:
    """Convert an error to L{Invalid}, except a lack of file descriptors, which the request cannot correct."""
    if isinstance(error, TooManyOpenFiles) or (isinstance(error, OSError) and is_out_of_descriptors(error)):
        return error
    why = error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)
    return Invalid(f"the folder cannot be used: {why}", "/settings/path")


def place_of(settings: StorageSettings) -> BucketPlace:
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


async def make_bucket(buckets: StorageBuckets, name: str, place: BucketPlace, uid: str) -> BucketBlobStore:
    """Take the place for a storage. :raises Invalid: it cannot be used"""
    try:
        return await buckets.make(name, place, uid)
    except BucketFailed as error:
        raise Invalid(f"the bucket cannot be used: {error.reason}", "/settings") from error
    except Conflict as error:
        raise Invalid(f"the bucket cannot be used: {error}", "/settings") from error


def changed_place(buckets: StorageBuckets, storage: Storage, settings: StorageSettings) -> BucketPlace | None:
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
    before = buckets.place(storage.name, {**stored, "access_key_id": None} if key else stored)
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


def is_at(storage: Storage, place: BucketPlace) -> bool:
    """Whether a storage is at this place."""
    stored = storage.settings
    return not storage.is_local and (stored["endpoint"], stored["bucket"], stored["prefix"]) == (
        place.endpoint,
        place.bucket,
        place.prefix,
    )


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
