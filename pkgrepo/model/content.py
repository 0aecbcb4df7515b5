"""What repositories hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import Factory, frozen


class Visibility(StrEnum):
    """Who sees a repository without a grant: everybody, nobody, or whoever knows its exact name."""

    PUBLIC = "public"
    PRIVATE = "private"
    HIDDEN = "hidden"


class RepositoryType(StrEnum):
    """Where a repository's packages come from; the spellings are the specification's."""

    HOSTED = "Hosted"
    PROXY = "Proxy"
    VIRTUAL = "Virtual"


class VersionState(StrEnum):
    """Life of a version. Deleted versions keep no files; what remains of them is a tombstone."""

    LIVE = "live"
    YANKED = "yanked"
    DEPRECATED = "deprecated"


@frozen
class Storage:
    """A place for bytes; repositories live in exactly one."""

    id: int
    uid: str
    name: str
    kind: str
    settings: Mapping[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime

    @property
    def readable_layout(self) -> bool:
        """Whether its files are shown under readable names, too, from which a lost catalog can be built again."""
        return bool(self.settings.get("readable_layout", True))


@frozen
class Repository:
    """One repository as the catalog has it; ``config`` is the object of the management API, defaults filled in."""

    id: int
    uid: str
    storage_id: int
    storage_name: str
    name: str
    format: str
    type: RepositoryType
    visibility: Visibility
    active: bool
    description: str
    config: Mapping[str, Any]
    settings: Mapping[str, Any]
    serial: int
    bytes_used: int
    package_count: int
    created_at: datetime
    updated_at: datetime

    @property
    def path(self) -> str:
        """``storage/name``, the way people and scopes write it."""
        return f"{self.storage_name}/{self.name}"

    @property
    def auth_enabled(self) -> bool:
        """Whether even public reads need credentials."""
        auth = self.settings.get("auth")
        return bool(auth and auth.get("enabled", False))


@frozen
class Package:
    """
    A named thing with versions, in one repository.

    ``modified_s`` is the Unix time under which HTTP tells of its last change: another second, and a later one, for
    each, so that it is ahead of the clock for a while after several in one second.
    """

    id: int
    repository_id: int
    key: str
    name: str
    latest: str | None
    serial: int
    meta: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    modified_s: int


@frozen
class Version:
    """One release of a package; ``sort`` orders as the format orders, bytewise."""

    id: int
    package_id: int
    key: str
    text: str
    sort: bytes
    state: VersionState
    reason: str
    meta: Mapping[str, Any]
    published_at: datetime
    publisher: str


@frozen
class BlobInfo:
    """Bytes that are durable in a storage. ``digests`` maps algorithm name to hex and always has ``sha256``."""

    sha256: str
    size: int
    locator: str
    digests: Mapping[str, str]


@frozen
class File:
    """What a repository answers under ``path`` (decoded, no leading slash)."""

    id: int
    repository_id: int
    storage_id: int
    path: str
    package_id: int | None
    version_id: int | None
    sha256: str
    size: int
    locator: str
    media_type: str
    digests: Mapping[str, str]
    attrs: Mapping[str, Any]
    created_at: datetime


@frozen
class NewFile:
    """A file about to be published; its bytes are durable already."""

    path: str
    blob: BlobInfo
    media_type: str = "application/octet-stream"
    attrs: Mapping[str, Any] = Factory(dict)


@frozen
class Document:
    """
    A rendered index document, ready to be sent.

    ``etag`` is the quoted strong validator of the identity form; the compressed forms carry it with a suffix.
    Absent compressed forms mean that compressing was not worth it. ``modified_s`` is that of the package, where the
    document is of one and is told with a date.
    """

    content_type: str
    body: bytes
    etag: str
    serial: int
    gzip: bytes | None = None
    zstd: bytes | None = None
    modified_s: int | None = None
