"""Statistics of a repository, and how the whole server is used and is."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import apsw

import twisted
from pkgrepo import __version__, build
from pkgrepo.management.api.access_rules import ADMINS, METRICS_READERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import (
    Day,
    DownloadCount,
    FormatName,
    HitRatio,
    Misses,
    RepositoryId,
    RepositoryKind,
    RepositoryPath,
    Sentence,
    Total,
    Warnings,
)
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.api.services import Histogram
from pkgrepo.management.health import run_checks
from pkgrepo.management.jobs.schema import JobRecord, job_record
from pkgrepo.management.repositories.stored import warnings_of
from pkgrepo.management.upstreams import CacheFigures
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.repositories.upkeep.gc import KIND
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.server.statistics import repository_figures
from pkgrepo.storage.catalog.usage_counts import (
    DAY_MS,
    CacheCounts,
    DayCounts,
    StorageSize,
    cache_counts,
    cache_counts_since,
    daily_counts,
    sizes_since,
)

MOST_DAYS = 366
DAYS = 30
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

table = Table("repositories")
server_table = Table("server")


class TopImage(Record):
    """An image and its number of tags; in other formats, a package and its number of versions."""

    name: Annotated[str, meaning("The name of the image; in other formats, of the package.")]
    tag_count: Annotated[int, meaning("How many tags it has; in other formats, versions.")]


class TopPackageRecord(Record):
    """A package with its statistics; for images, versions is the number of tags."""

    name: Annotated[str, meaning("The name of the package.")]
    versions: Annotated[int, meaning("How many versions it has; of images, tags.")]
    downloads: DownloadCount
    bytes: Annotated[int, meaning("The size in bytes.")]


class DownloadFigures(Record):
    """Complete downloads of files: in total, today, in the last seven and in the last thirty days (UTC)."""

    total: Total
    day: Annotated[int, meaning("How many there were today (UTC); of uploads, in the last 24 hours.")]
    week: Annotated[int, meaning("How many there were in the last seven days (UTC).")]
    month: Annotated[int, meaning("How many there were in the last thirty days (UTC).")]


class UploadFigures(Record):
    """Published files: in total, and in the last 24 hours."""

    total: Total
    day: Annotated[int, meaning("How many there were today (UTC); of uploads, in the last 24 hours.")]


class RepositoryStats(Record):
    """
    Statistics of a repository.

    In formats other than container images, total_images counts packages and total_tags counts versions.
    """

    repository_id: RepositoryId
    total_images: Annotated[int, meaning("How many images there are; in other formats, packages.")]
    total_tags: Annotated[int, meaning("How many tags there are; in other formats, versions.")]
    storage_used: Annotated[str, meaning("storage_used_bytes with a unit, such as 2.5GB.")]
    last_activity: Annotated[datetime | None, meaning("When something was last published or fetched; null for never.")]
    top_images: Annotated[list[TopImage], meaning("The images with the most tags.")]
    format: FormatName
    type: RepositoryKind
    total_packages: Annotated[int, meaning("How many packages there are.")]
    total_versions: Annotated[int, meaning("How many versions there are.")]
    total_files: Annotated[int, meaning("How many files there are.")]
    total_manifests: Annotated[int, meaning("How many manifests there are.")]
    total_blobs: Annotated[int, meaning("How many blobs there are.")]
    storage_used_bytes: Annotated[int, meaning("The size in bytes, with each stored blob counted once.")]
    logical_bytes: Annotated[int, meaning("The size in bytes, with a blob counted once for each reference.")]
    shared_bytes: Annotated[int, meaning("The part of the bytes that other repositories use too.")]
    unreferenced_bytes: Annotated[int, meaning("The part of the bytes that garbage collection can free.")]
    pending_uploads: Annotated[int, meaning("How many uploads have not ended.")]
    downloads: Annotated[DownloadFigures, meaning("How much was downloaded.")]
    uploads: Annotated[UploadFigures, meaning("How much was published.")]
    cache: Annotated[CacheFigures | None, meaning("How the cache was used; null unless it is a proxy.")]
    top_packages: Annotated[list[TopPackageRecord], meaning("The packages with the most downloads.")]
    warnings: Warnings
    gc: Annotated[JobRecord | None, meaning("The last garbage collection of the storage; null for none.")]


class DayRecord(Record):
    """A day (UTC): complete downloads, published versions, and requests to proxies."""

    day: Day
    downloads: DownloadCount
    uploads: Annotated[int, meaning("How many versions were published.")]
    hits: Annotated[int, meaning("Requests that needed no upstream.")]
    misses: Misses
    hit_ratio: HitRatio


class TimesRecord(Record):
    """
    How long something took, as quantiles in seconds: half of all were not longer than p50_s; null without any.

    They are upper bounds, since durations are counted in classes.
    """

    name: Annotated[str, meaning("What took so long.")]
    count: Annotated[int, meaning("How many there were.")]
    p50_s: Annotated[float | None, meaning("Half of all took no longer, in seconds; null without any.")]
    p90_s: Annotated[float | None, meaning("90 % of all took no longer, in seconds; null without any.")]
    p99_s: Annotated[float | None, meaning("99 % of all took no longer, in seconds; null without any.")]


class ProxyUseRecord(Record):
    """How a proxy repository was used: requests that needed no upstream (hits) or did, and the part of hits."""

    repository: RepositoryPath
    hits: Annotated[int, meaning("Requests that needed no upstream.")]
    misses: Misses
    hit_ratio: HitRatio
    upstream_ms: Annotated[
        float | None, meaning("How long requests to its upstreams took on average, in milliseconds; null without any.")
    ]
    saved_bytes: Annotated[int, meaning("The size in bytes of the kept files that were sent.")]
    fetched_bytes: Annotated[int, meaning("The size in bytes of what upstreams sent.")]


class StorageSizeRecord(Record):
    """What a storage held on a day (UTC), as last measured then: the number of stored bytes objects, and their size."""

    storage: Annotated[str, meaning("The name of the storage.")]
    day: Day
    blobs: Annotated[int, meaning("How many blobs it held.")]
    bytes: Annotated[int, meaning("Their size, in bytes.")]


class ServerStatistics(Record):
    """How the server was used: days from old to new, today as the last."""

    days: Annotated[list[DayRecord], meaning("Days from old to new, today as the last.")]
    times: Annotated[
        list[TimesRecord], meaning("How long successful reads took since the start of this server process, by format.")
    ]
    proxies: Annotated[list[ProxyUseRecord], meaning("The proxies that were used in these days, by name.")]
    storages: Annotated[
        list[StorageSizeRecord],
        meaning("What each storage held on each day on which it was measured, the oldest first."),
    ]


class CheckRecord(Record):
    """The result of a health check; status is ok, degraded or unavailable."""

    name: Annotated[str, meaning("The name of the check.")]
    status: Annotated[str, meaning("ok, degraded or unavailable.")]
    sentence: Sentence


class UpstreamStateRecord(Record):
    """A route of a proxy repository as this server process knows it; see the upstreams of the repository."""

    repository: RepositoryPath
    route: Annotated[str, meaning("The name of the upstream route.")]
    state: Annotated[str, meaning("The state of its circuit breaker: closed, open, half_open or unused.")]
    last_error: Annotated[str | None, meaning("The last error; null if there was none.")]
    last_success_at: Annotated[datetime | None, meaning("When a request last succeeded; null for never.")]
    last_failure_at: Annotated[datetime | None, meaning("When a request last failed; null for never.")]


class ServerState(Record):
    """The state of the server: ok, degraded or unavailable, with the checks that decide."""

    status: Annotated[str, meaning("ok, degraded or unavailable.")]
    checks: Annotated[list[CheckRecord], meaning("The checks that decide.")]
    started_at: Annotated[datetime, meaning("When the process that answers was started.")]
    versions: Annotated[dict[str, str], meaning("The versions of the server and its libraries.")]
    reactor_lag: Annotated[TimesRecord, meaning("How late scheduled calls ran in the process that answers.")]
    upstreams: Annotated[
        list[UpstreamStateRecord], meaning("The routes of proxies, as the process that answers knows them.")
    ]


@table.command(
    "stats STORAGE/REPOSITORY",
    fields="repository: repository | format: format | type: type | packages: total_packages | "
    "versions: total_versions | files: total_files | stored: storage_used_bytes:size | "
    "with repetitions: logical_bytes:size | shared: shared_bytes:size | unreferenced: unreferenced_bytes:size | "
    "downloads: {downloads.total} ({downloads.day} today, {downloads.week} in 7 days, {downloads.month} in 30) | "
    "uploads: {uploads.total} ({uploads.day} in 24 hours) | last activity: last_activity:time | cache: cache:caches | "
    "last gc: gc:job | most used: top_packages:used",
    unfit="--days is for the whole server",
    about="Show what a repository contains and how it is used, or how the whole server was used by day.",
)
@table.get("/repository/<repository>/stats", ADMINS, "Show statistics of a repository")
async def show_repository_statistics(call: Call) -> RepositoryStats:
    """The figures are counted at each request, in a background thread."""
    repository = call.repository
    found = await call.catalog.scan(repository_figures, repository.storage_id, repository.id, call.now_ms)
    # images have tags where other packages have versions
    images = found.manifests > 0
    versions = found.tags if images else found.versions
    counts = await call.catalog.look(cache_counts, repository.id)
    job = await call.services.jobs.last(KIND, call.registry.storage(repository.storage_id).uid)
    return RepositoryStats(
        repository_id=repository.uid,
        total_images=found.packages,
        total_tags=versions,
        storage_used=for_people(found.stored),
        last_activity=found.last_activity,
        top_images=[TopImage(name=each.name, tag_count=each.tags if images else each.versions) for each in found.top],
        format=repository.format,
        type=repository.type,
        total_packages=found.packages,
        total_versions=versions,
        total_files=found.blobs if images else found.files,
        total_manifests=found.manifests,
        total_blobs=found.blobs,
        storage_used_bytes=found.stored,
        logical_bytes=found.logical,
        shared_bytes=found.shared,
        unreferenced_bytes=found.unreferenced,
        pending_uploads=found.pending_uploads,
        downloads=DownloadFigures(
            total=found.downloads[0], day=found.downloads[1], week=found.downloads[2], month=found.downloads[3]
        ),
        uploads=UploadFigures(total=found.uploads[0], day=found.uploads[1]),
        cache=CacheFigures.of(counts) if repository.type is RepositoryType.PROXY else None,
        top_packages=[
            TopPackageRecord(
                name=each.name,
                versions=each.tags if images else each.versions,
                downloads=each.downloads,
                bytes=each.size,
            )
            for each in found.top
        ],
        warnings=warnings_of(call, repository, names_rules=True),
        gc=None if job is None else job_record(job, repository),
    )


def for_people(size: int) -> str:
    """A size in bytes with a binary unit: 2684354560 is 2.5GB."""
    value, units = float(size), ["B", "KB", "MB", "GB", "TB", "PB", "EB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f}".removesuffix(".0") + units[0]


@server_table.command(
    "stats",
    options="days",
    said={"--days": "Of the whole server: the last so many days."},
    columns="DAY (UTC): day | DOWNLOADS: downloads:number | UPLOADS: uploads:number | FROM CACHES: hits:number | "
    "FROM UPSTREAMS: misses:number",
    rows="days",
    whole=True,
)
@server_table.get(
    "/statistics",
    METRICS_READERS,
    "Show how the server was used, by day",
    query=[Parameter("days", f"The number of days, 1 to {MOST_DAYS}; {DAYS} by default.", "integer")],
)
async def show_server_statistics(call: Call) -> ServerStatistics:
    """Downloads, uploads and what caches answered on each of the last days (UTC), over all repositories."""
    today = call.now_ms // DAY_MS
    first = today + 1 - call.integer("days", DAYS, 1, MOST_DAYS)
    found = await call.catalog.scan(daily_counts, first)
    return ServerStatistics(
        days=[_day(day, found.get(day, DayCounts())) for day in range(first, today + 1)],
        times=[_times(name, each) for name, each in sorted(call.services.request_times().items())],
        proxies=_proxies(call, await call.catalog.scan(cache_counts_since, first)),
        storages=_sizes(call, await call.catalog.scan(sizes_since, first)),
    )


def _proxies(call: Call, counts: Mapping[int, CacheCounts]) -> list[ProxyUseRecord]:
    found = []
    for repository in call.registry.listed():
        used = counts.get(repository.id)
        if repository.type is not RepositoryType.PROXY or used is None:
            continue
        asked = used.misses + used.confirmed + used.absent
        found.append(
            ProxyUseRecord(
                repository=repository.path,
                hits=used.hits + used.stale,
                misses=used.misses + used.confirmed,
                hit_ratio=used.hit_ratio,
                upstream_ms=used.upstream_ms / asked if asked else None,
                saved_bytes=used.saved_bytes,
                fetched_bytes=used.fetched_bytes,
            )
        )
    return sorted(found, key=lambda each: each.repository)


def _sizes(call: Call, sizes: Sequence[StorageSize]) -> list[StorageSizeRecord]:
    names = {each.id: each.name for each in call.registry.storages()}
    return [
        StorageSizeRecord(storage=names[each.storage_id], day=_date(each.day), blobs=each.blobs, bytes=each.bytes)
        for each in sizes
        if each.storage_id in names
    ]


@server_table.get("/server/state", SYSTEM_MANAGERS, "Show the state of the server")
async def show_state(call: Call) -> ServerState:
    """The checks of /readyz with their sentences, versions, the lag of the reactor, and the upstreams."""
    status, checks = await run_checks(call.services)
    lag = call.services.reactor_lag()
    return ServerState(
        status=status,
        checks=[CheckRecord.from_attributes(each) for each in checks],
        started_at=call.services.started_at,
        versions={
            "pkgrepo": __version__,
            "commit": await call.shared.pools.disk(build.commit) or "unknown",
            "catalog schema": str((await call.shared.pools.disk(load_schema)).version),
            "Python": platform.python_version(),
            "Twisted": twisted.__version__,
            "SQLite": apsw.sqlite_lib_version(),
        },
        reactor_lag=_times("reactor", lag),
        upstreams=_upstreams(call),
    )


def _upstreams(call: Call) -> list[UpstreamStateRecord]:
    """The routes of all proxy repositories that this process has asked."""
    health = call.shared.proxy.upstreams.health
    found = []
    for repository in call.registry.listed():
        if repository.type is not RepositoryType.PROXY:
            continue
        for route in proxy_config_of(repository).routes:
            known = health(repository.id, route)
            if known is not None:
                found.append(UpstreamStateRecord.from_attributes(known, repository=repository.path, route=route.name))
    return found


def _day(day: int, counts: DayCounts) -> DayRecord:
    return DayRecord.from_attributes(counts, day=_date(day), hit_ratio=counts.hit_ratio)


def _date(day: int) -> date:
    return (EPOCH + timedelta(days=day)).date()


def _times(name: str, histogram: Histogram) -> TimesRecord:
    p50, p90, p99 = (histogram.quantile(part) for part in (0.5, 0.9, 0.99))
    return TimesRecord(name=name, count=histogram.total, p50_s=p50, p90_s=p90, p99_s=p99)
