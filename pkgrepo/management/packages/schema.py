"""Packages, versions and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from msgspec import Meta

from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, VersionSummary


class PackageFlags(Record):
    """How many of the versions are not what one should take."""

    yanked: int
    deprecated: int


class PackageRecord(Record):
    """A package with the figures of what is below it; size in bytes."""

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
    """A package that was found, with its repository."""

    repository_id: str
    repository: str
    format: str


class Hits(Record):
    """What was found, best first; truncated says that there is more than the limit."""

    items: list[PackageHit]
    truncated: bool


class VersionSummaryRecord(Record):
    """
    A version in a list; size in bytes.

    Versions of images are tags, and digests of manifests that nothing else names; digest is that of the manifest.
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
    """A file; path is below the repository's address, digests by algorithm as hex."""

    name: str
    path: str
    url: str
    size: int
    media_type: str
    digests: dict[str, str]
    uploaded_at: datetime


class VersionRecord(Record):
    """A version with its files; metadata is what its format knows of it."""

    package: str
    version: str
    state: str
    reason: str
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
    """What went, or would go: paths of files."""

    deleted: list[str]
    dry_run: bool


class PathsGiven(Body):
    """What to delete: packages, package/version, or paths of files."""

    paths: Annotated[list[Word], Meta(min_length=1, max_length=1000)]


class Rejected(Record):
    """What could not be deleted, and why."""

    path: str
    reason: str


class DeletedPaths(Record):
    """What went, what was not there, and what could not be deleted."""

    deleted: list[str]
    missing: list[str]
    rejected: list[Rejected]


class Reason(Body):
    """Why, for people."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class VersionState(Record):
    """The state of a version: live, yanked or deprecated."""

    package: str
    version: str
    state: str
    reason: str


class TreeEntry(Record):
    """A folder or a file of a repository; size in bytes, and digest, modified_at and url are those of files."""

    name: str
    path: str
    kind: str
    size: int | None = None
    digest: str | None = None
    media_type: str | None = None
    modified_at: datetime | None = None
    url: str | None = None
