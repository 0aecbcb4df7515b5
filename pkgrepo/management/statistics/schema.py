"""Statistics."""

from __future__ import annotations

from datetime import datetime

from pkgrepo.management.api.schema import Record
from pkgrepo.management.jobs.schema import JobRecord


class TopImage(Record):
    """An image with its number of tags; of other formats, a package with its number of versions."""

    name: str
    tag_count: int


class TopPackageRecord(Record):
    """A package with its figures; of images, versions counts tags."""

    name: str
    versions: int
    downloads: int
    bytes: int


class DownloadFigures(Record):
    """Whole files that were sent: ever, today, in seven and in thirty days (UTC)."""

    total: int
    day: int
    week: int
    month: int


class UploadFigures(Record):
    """What was published: ever, and in the last 24 hours."""

    total: int
    day: int


class RepositoryStats(Record):
    """
    A repository in numbers; storage_used is storage_used_bytes for people.

    total_images and total_tags are packages and versions of other formats. storage_used_bytes counts what is stored
    once only once, logical_bytes as often as it is named; shared_bytes are named by other repositories too, and
    unreferenced_bytes is what garbage collection may free. gc is the last one on the repository's storage. warnings are
    sentences about what its configuration brings about.
    """

    repository_id: str
    total_images: int
    total_tags: int
    storage_used: str
    last_activity: datetime | None
    top_images: list[TopImage]
    format: str
    type: str
    total_packages: int
    total_versions: int
    total_files: int
    total_manifests: int
    total_blobs: int
    storage_used_bytes: int
    logical_bytes: int
    shared_bytes: int
    unreferenced_bytes: int
    pending_uploads: int
    downloads: DownloadFigures
    uploads: UploadFigures
    top_packages: list[TopPackageRecord]
    warnings: list[str]
    gc: JobRecord | None
