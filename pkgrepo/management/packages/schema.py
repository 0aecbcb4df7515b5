"""Packages, versions and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from msgspec import Meta

from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, VersionSummary


class PackageFlags(Record):
    """Numbers of yanked and of deprecated versions."""

    yanked: int
    deprecated: int


class PackageRecord(Record):
    """A package with the totals of its versions and files; size in bytes."""

    name: str
    key: str
    latest: str | None
    versions: int
    files: int
    size: int
    downloads: int
    source: str
    created_at: datetime
    updated_at: datetime
    flags: PackageFlags

    measured = frozenset({"downloads"})

    @classmethod
    def of(cls, summary: PackageSummary, **more: str) -> Self:
        """The record of a package; ``more`` are fields of a subclass."""
        flags = PackageFlags(yanked=summary.withdrawn, deprecated=summary.deprecated)
        return cls.from_attributes(summary, source="hosted", flags=flags, **more)


class PackageHit(PackageRecord):
    """A package in a search result, with its repository."""

    repository_id: str
    repository: str
    format: str


class Hits(Record):
    """The result of a search, best matches first; truncated is true if more than limit packages match."""

    items: list[PackageHit]
    truncated: bool


class VersionSummaryRecord(Record):
    """
    A version in a list; size in bytes.

    The versions of an image are its tags, and the digests of manifests that no tag and no other manifest refers to;
    digest is that of the manifest.
    """

    version: str
    state: str
    reason: str
    published_at: datetime
    publisher: str
    files: int
    size: int
    digest: str | None = None

    @classmethod
    def of(cls, summary: VersionSummary) -> Self:
        """The record of a version of anything but an image."""
        return cls.from_attributes(summary, version=summary.text)


class FileRecord(Record):
    """A file. path is relative to the address of the repository; digests maps algorithms to hex digests."""

    name: str
    path: str
    url: str
    size: int
    media_type: str
    digests: dict[str, str]
    uploaded_at: datetime


class VersionState(Record):
    """The state of a version (live, yanked or deprecated) and its reason."""

    package: str
    version: str
    state: str
    reason: str


class VersionRecord(VersionState):
    """A version with its files; metadata contains further fields of the format."""

    published_at: datetime
    publisher: str
    license: str
    keywords: list[str]
    links: dict[str, str]
    dependencies: list[str]
    tags: list[str]
    files: list[FileRecord]
    metadata: dict[str, Any]
    digest: str | None = None


class DeletedVersion(Record):
    """What was deleted, or would be with dry_run: paths of files; for images, tags and digests."""

    deleted: list[str]
    dry_run: bool


class PathsGiven(Body):
    """What to delete: names of packages, package/version, or paths of files."""

    paths: Annotated[list[Word], Meta(min_length=1, max_length=1000)]


class Rejected(Record):
    """A path that could not be deleted, and the reason."""

    path: str
    reason: str


class DeletedPaths(Record):
    """The paths that were deleted, those that do not exist, and those that could not be deleted."""

    deleted: list[str]
    missing: list[str]
    rejected: list[Rejected]


class Reason(Body):
    """The reason of a yank; clients show it."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class TreeEntry(Record):
    """A folder or a file of a repository; kind is folder or file. For folders the optional fields are null."""

    name: str
    path: str
    kind: str
    size: int | None = None
    digest: str | None = None
    media_type: str | None = None
    modified_at: datetime | None = None
    url: str | None = None
