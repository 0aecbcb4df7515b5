"""The bodies and records of storages."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from pkgrepo.management.api.schema import Body, Name, Record

BucketName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
Endpoint = Annotated[str, Meta(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$", max_length=300)]
Region = Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,64}$")]
Prefix = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/|$))*$", max_length=300)]
KeyText = Annotated[str, Meta(min_length=1, max_length=300, pattern=r"^[\x21-\x7e]+$")]


class StorageSettings(Body):
    """
    Settings of a storage. Of type Local: path is its folder, by default storages/<name> in the data folder.

    readable_layout (on by default) also keeps the files under their names; from this layout a lost database can be
    rebuilt.

    Of type S3: the bucket at an endpoint that speaks the S3 protocol, below a prefix. path_style (on by default) names
    the bucket in the path, not in the host name. Without an access key, credentials are found in the environment of the
    server, in its files, or of the instance. A secret is never shown. With redirect_from, such as 64MiB (bytes without
    a unit; more than 64KiB, 0 for never), clients get files of that size from the bucket itself, by signed addresses
    that are valid for 5 minutes: they must reach the endpoint. ca_file is the absolute path of a file of certificates
    (PEM) on the server that are trusted beside the system's; empty for none.
    """

    path: str | None = None
    readable_layout: bool | None = None
    endpoint: Endpoint | None = None
    bucket: BucketName | None = None
    region: Region | None = None
    prefix: Prefix | None = None
    path_style: bool | None = None
    access_key_id: KeyText | None = None
    secret_access_key: KeyText | None = None
    redirect_from: int | str | None = None
    ca_file: str | None = None


class OldStorageConfig(Body):
    """Type and settings in one object, as clients of other servers send them."""

    type: str = "Local"
    settings: StorageSettings = field(default_factory=StorageSettings)


class NewStorage(Body):
    """A new storage. path may be given here or in settings."""

    name: Name
    type: Literal["Local", "local", "S3", "s3"] = "Local"
    path: str | None = None
    settings: StorageSettings = field(default_factory=StorageSettings)
    config: OldStorageConfig | None = None
    active: bool = True


class StorageChange(Body):
    """
    The fields of a storage that can be changed; path only while the storage is unused, the others at any time.

    Of a storage of type S3, endpoint, region, path_style, redirect_from, ca_file and the access key can be changed;
    another endpoint needs the access key again.
    """

    name: Name | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    path: str | UnsetType = UNSET
    settings: StorageSettings | UnsetType = UNSET


class Usage(Record):
    """Size and number of the stored blobs, and the capacity of the disk; null while the disk cannot be read."""

    bytes: int
    blobs: int
    free_bytes: int | None = None
    total_bytes: int | None = None


class StorageRecord(Record):
    """A storage. The path of one in a bucket is its address. warnings are sentences about risks of its settings."""

    id: str
    name: str
    type: str
    settings: dict[str, str | bool | int]
    active: bool
    created_at: datetime
    updated_at: datetime
    usage: Usage
    warnings: list[str] = []

    measured = frozenset({"usage"})


class StorageCheck(Record):
    """The result of a test: times in milliseconds, and the error if ok is false."""

    ok: bool
    error: str | None
    bytes: int
    write_ms: float
    read_ms: float
    free_bytes: int | None
