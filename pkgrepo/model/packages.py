"""What a repository contains: packages, versions, files and index documents; known vulnerabilities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from attrs import Factory, asdict, frozen

PUBLISHED_MS: Final = "published_ms"  # of the attributes of a file that was published in another repository before


@frozen
class Package:
    """
    A package in one repository.

    ``modified_s`` is the Unix time of its last change for Last-Modified. Each change gets a later second than the one
    before, so after several changes within one second it is ahead of the clock for a while.
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


class VersionState(StrEnum):
    """The state of a version. Of a deleted version only a tombstone remains."""

    LIVE = "live"
    YANKED = "yanked"
    DEPRECATED = "deprecated"


@frozen
class Version:
    """One version of a package. Sorted by the bytes of ``sort``, versions have the order that the format defines."""

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
    """A blob that is durable in a storage. ``digests`` maps algorithm names to hex and always has ``sha256``."""

    sha256: str
    size: int
    locator: str
    digests: Mapping[str, str]


@frozen
class Origin:
    """
    Where a cached file came from: the name of the route, and the URL without query.

    Times are in milliseconds since the epoch; ``published_ms`` is None if the upstream does not tell, or with
    ``first_seen`` when this server first saw the file. ``address`` is the URL of the route then; empty if that is not
    known.
    """

    route: str
    url: str
    fetched_ms: int
    published_ms: int | None
    address: str = ""
    first_seen: bool = False

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Origin | None:
        """The origin in the attributes of a file, or None."""
        found = attrs.get("upstream")
        if found is None:
            return None
        rest = (found.get("published_ms"), found.get("address", ""), found.get("first_seen", False))
        return cls(found["route"], found["url"], found["fetched_ms"], *rest)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of a file that it is read from."""
        return {"upstream": asdict(self)}


@frozen
class File:
    """A published file; ``path`` is decoded, below the repository's address, without a leading slash."""

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

    @property
    def role(self) -> str | None:
        """What a companion of another file is to it, as a suffix of its path; None for a file of its own."""
        role: str | None = self.attrs.get("role")
        return role

    @property
    def origin(self) -> Origin | None:
        """Where a cached file came from; None for a published one."""
        return Origin.of(self.attrs)

    @property
    def published_ms(self) -> int:
        """When it was published, in ms: at the source that it came from, as far as that told it, else here."""
        origin = self.origin
        published_ms: int | None = self.attrs.get(PUBLISHED_MS) if origin is None else origin.published_ms
        return round(self.created_at.timestamp() * 1000) if published_ms is None else published_ms

    @property
    def published_at(self) -> datetime:
        """The same, as an aware time."""
        return datetime.fromtimestamp(self.published_ms / 1000, UTC)


@frozen
class NewFile:
    """A file to be published; its blob is durable already. ``created_ms`` is None unless it was published before."""

    path: str
    blob: BlobInfo
    media_type: str = "application/octet-stream"
    attrs: Mapping[str, Any] = Factory(dict)
    created_ms: int | None = None


class Fragment(NamedTuple):
    """A prerendered part of a package's documents, which have theirs in the order of (sort, key)."""

    sort: bytes
    key: str
    body: bytes


@frozen
class Document:
    """
    A rendered index document, ready to be sent.

    ``etag`` is the quoted strong validator of the uncompressed form; the compressed forms add a suffix to it. ``gzip``
    and ``zstd`` are None when compression saves too little. ``size`` is that of the uncompressed form in bytes; of a
    large document ``body`` is empty, and that form is unpacked from ``gzip`` while it is sent. ``modified_s`` is that
    of the package, for documents of one package that are sent with Last-Modified. ``digests`` of the uncompressed form
    (hex, by ``hashlib`` name) are those that the format sends.
    """

    content_type: str
    body: bytes
    etag: str
    serial: int
    gzip: bytes | None = None
    zstd: bytes | None = None
    modified_s: int | None = None
    digests: Mapping[str, str] = Factory(dict)
    size: int = Factory(lambda self: len(self.body), takes_self=True)
