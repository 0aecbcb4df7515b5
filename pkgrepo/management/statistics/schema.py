"""Statistics."""

from __future__ import annotations

from datetime import date, datetime

from pkgrepo.management.api.schema import Record
from pkgrepo.management.jobs.schema import JobRecord
from pkgrepo.management.upstreams.schema import CacheFigures


class TopImage(Record):
    """An image and its number of tags; in other formats, a package and its number of versions."""

    name: str
    tag_count: int


class TopPackageRecord(Record):
    """A package with its statistics; for images, versions is the number of tags."""

    name: str
    versions: int
    downloads: int
    bytes: int


class DownloadFigures(Record):
    """Complete downloads of files: in total, today, in the last seven and in the last thirty days (UTC)."""

    total: int
    day: int
    week: int
    month: int


class UploadFigures(Record):
    """Published files: in total, and in the last 24 hours."""

    total: int
    day: int


class RepositoryStats(Record):
    """
    Statistics of a repository. storage_used is storage_used_bytes with a unit, such as 2.5GB.

    In formats other than container images, total_images counts packages and total_tags counts versions.
    storage_used_bytes counts each stored blob once, logical_bytes once for each reference. shared_bytes is the part
    that other repositories use too, unreferenced_bytes the part that garbage collection can free. gc is the last
    collection on the storage. cache is null unless it is a proxy repository. warnings are sentences about consequences
    of the configuration.
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
    cache: CacheFigures | None
    top_packages: list[TopPackageRecord]
    warnings: list[str]
    gc: JobRecord | None


class DayRecord(Record):
    """
    A day (UTC): complete downloads, published versions, and requests to proxies.

    hits needed no upstream, misses did. hit_ratio is the part of hits, null without any.
    """

    day: date
    downloads: int
    uploads: int
    hits: int
    misses: int
    hit_ratio: float | None


class TimesRecord(Record):
    """
    How long something took, as quantiles in seconds: half of all were not longer than p50_s; null without any.

    They are upper bounds, since durations are counted in classes.
    """

    name: str
    count: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None


class ServerStatistics(Record):
    """
    How the server was used: days from old to new, today as the last.

    times are those of successful reads since the start of this server process, by format.
    """

    days: list[DayRecord]
    times: list[TimesRecord]


class CheckRecord(Record):
    """The result of a health check; status is ok, degraded or unavailable."""

    name: str
    status: str
    sentence: str


class UpstreamStateRecord(Record):
    """A route of a proxy repository as this server process knows it; see the upstreams of the repository."""

    repository: str
    route: str
    state: str
    last_error: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None


class ServerState(Record):
    """
    The state of the server: ok, degraded or unavailable, with the checks that decide.

    started_at, reactor_lag (how late scheduled calls ran) and upstreams are those of the process that answers.
    """

    status: str
    checks: list[CheckRecord]
    started_at: datetime
    versions: dict[str, str]
    reactor_lag: TimesRecord
    upstreams: list[UpstreamStateRecord]
