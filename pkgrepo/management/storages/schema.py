"""The bodies and records of storages."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from pkgrepo.management.api.fields import CreatedAt, ObjectId, UpdatedAt, Warnings
from pkgrepo.management.api.schema import Body, Name, Record
from pkgrepo.model.structs import meaning
from pkgrepo.untrusted.patterns import pattern

BucketName = Annotated[
    str, Meta(pattern=pattern(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", "3 to 63 small letters, digits, dots and dashes"))
]
Endpoint = Annotated[
    str,
    Meta(
        pattern=pattern(
            r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$", "an address such as https://s3.example.com, without a path"
        ),
        max_length=300,
    ),
]
Region = Annotated[str, Meta(pattern=pattern(r"^[a-z0-9-]{1,64}$", "small letters, digits and dashes"))]
Prefix = Annotated[
    str,
    Meta(
        pattern=pattern(
            r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/|$))*$", "a path of letters, digits, dots, dashes and underscores"
        ),
        max_length=300,
    ),
]
KeyText = Annotated[
    str, Meta(min_length=1, max_length=300, pattern=pattern(r"^[\x21-\x7e]+$", "ASCII characters without spaces"))
]


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

    path: Annotated[
        str | None, meaning("The folder of a Local storage; by default storages/<name> in the data folder.")
    ] = None
    readable_layout: Annotated[
        bool | None,
        meaning("Whether files are also kept under their names, from which a lost database can be rebuilt."),
    ] = None
    endpoint: Annotated[Endpoint | None, meaning("The address of a server that speaks the S3 protocol.")] = None
    bucket: Annotated[BucketName | None, meaning("The name of the bucket.")] = None
    region: Annotated[Region | None, meaning("The region of the bucket.")] = None
    prefix: Annotated[Prefix | None, meaning("The beginning of all keys in the bucket.")] = None
    path_style: Annotated[bool | None, meaning("Whether the bucket is named in the path, not in the host name.")] = None
    access_key_id: Annotated[
        KeyText | None, meaning("The id of the access key; without one, the environment of the server has credentials.")
    ] = None
    secret_access_key: Annotated[KeyText | None, meaning("The secret of the access key, which is never shown.")] = None
    redirect_from: Annotated[
        int | str | None, meaning("From this size on, clients get files from the bucket itself; 0 for never.")
    ] = None
    ca_file: Annotated[str | None, meaning("A file of certificates (PEM) on the server that are trusted as well.")] = (
        None
    )


class OldStorageConfig(Body):
    """Type and settings in one object, as clients of other servers send them."""

    type: Annotated[str, meaning("Local or S3.")] = "Local"
    settings: Annotated[StorageSettings, meaning("The settings of that type.")] = field(default_factory=StorageSettings)


class NewStorage(Body):
    """A new storage."""

    name: Name
    type: Annotated[Literal["Local", "local", "S3", "s3"], meaning("Local or S3.")] = "Local"
    path: Annotated[str | None, meaning("The folder of a Local storage; settings may have it instead.")] = None
    settings: Annotated[StorageSettings, meaning("The settings of its type.")] = field(default_factory=StorageSettings)
    config: Annotated[OldStorageConfig | None, meaning("Type and settings in an older form.")] = None
    active: Annotated[bool, meaning("Whether its repositories are served.")] = True


class StorageChange(Body):
    """
    The fields of a storage that can be changed; path only while the storage is unused, the others at any time.

    Of a storage of type S3, endpoint, region, path_style, redirect_from, ca_file and the access key can be changed;
    another endpoint needs the access key again.
    """

    name: Name | UnsetType = UNSET
    active: Annotated[bool | UnsetType, meaning("Whether its repositories are served.")] = UNSET
    path: Annotated[str | UnsetType, meaning("The folder, which changes only while the storage is unused.")] = UNSET
    settings: Annotated[StorageSettings | UnsetType, meaning("The settings that change.")] = UNSET


class Usage(Record):
    """Size and number of the stored blobs, and the capacity of the disk; null while the disk cannot be read."""

    bytes: Annotated[int, meaning("The size of the stored blobs, in bytes.")]
    blobs: Annotated[int, meaning("How many blobs are stored.")]
    free_bytes: Annotated[int | None, meaning("Free bytes of the disk; null while it cannot be read.")] = None
    total_bytes: Annotated[int | None, meaning("The capacity of the disk in bytes; null while it cannot be read.")] = (
        None
    )


class StorageRecord(Record):
    """
    A storage.

    The path of one in a bucket is its address.
    """

    id: ObjectId
    name: Annotated[str, meaning("The name of the storage.")]
    type: Annotated[str, meaning("Local or S3.")]
    settings: Annotated[dict[str, str | bool | int], meaning("The settings of its type, without secrets.")]
    active: Annotated[bool, meaning("Whether its repositories are served.")]
    created_at: CreatedAt
    updated_at: UpdatedAt
    usage: Annotated[Usage, meaning("What is stored in it.")]
    warnings: Warnings = []

    measured = frozenset({"usage"})


class StorageCheck(Record):
    """The result of a test: times in milliseconds, and the error if ok is false."""

    ok: Annotated[bool, meaning("Whether a blob could be written, read and removed.")]
    error: Annotated[str | None, meaning("What failed; null if nothing did.")]
    bytes: Annotated[int, meaning("The size of what was written, in bytes.")]
    write_ms: Annotated[float, meaning("How long the writing took, in milliseconds.")]
    read_ms: Annotated[float, meaning("How long the reading took, in milliseconds.")]
    free_bytes: Annotated[int | None, meaning("Free bytes of the disk; null if they are not known.")]
