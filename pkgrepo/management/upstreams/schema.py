"""Upstreams and caches."""

from __future__ import annotations

from datetime import datetime

from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.proxy.schema import Duration, Pattern, Seconds
from pkgrepo.proxy.upkeep.purge import PurgeReport
from pkgrepo.storage.catalog.usage.cache_counts import CacheCounts


class CacheFigures(Record):
    """
    How the cache of a proxy repository was used, since it exists.

    hits were answered with what is kept, misses with what an upstream sent, confirmed with what is kept, after an
    upstream confirmed it; stale_served with what is kept, because an upstream failed; absent asked for what no upstream
    has. Metadata that is sent again from memory is not counted. hit_ratio is the part that needed no upstream, null
    without any. saved_bytes is the size of the kept files that were sent. fetched_bytes and upstream_seconds are what
    upstreams sent, and how long that took.
    """

    hits: int
    misses: int
    confirmed: int
    stale_served: int
    absent: int
    hit_ratio: float | None
    saved_bytes: int
    fetched_bytes: int
    upstream_seconds: float

    @classmethod
    def of(cls, counts: CacheCounts) -> CacheFigures:
        """The record of the counts of a repository."""
        return cls.from_attributes(counts, stale_served=counts.stale, upstream_seconds=counts.upstream_ms / 1000)


class RouteRecord(Record):
    """
    A route of a proxy repository, as this server process knows it.

    state is that of its circuit breaker: closed (requests are sent), open (none are), half_open (the next one decides)
    or unused. The counts begin with the start of the server or a change of the route. documents are the answers that
    are kept from it, document_bytes their size.
    """

    name: str
    url: str
    priority: int
    state: str
    last_error: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    latency_ms: int | None
    successes: int
    failures: int
    limited_until: datetime | None
    documents: int
    document_bytes: int
    last_checked_at: datetime | None


class UpstreamRecord(Record):
    """
    The upstreams of a proxy repository, in the order in which they are asked, and what is kept of them.

    documents counts all kept answers about packages, also those of routes that were removed. cached_bytes is the size
    of documents and files together, which max_bytes limits. unused_days is the time after which they are removed.
    """

    routes: list[RouteRecord]
    documents: int
    document_bytes: int
    cached_bytes: int
    max_bytes: int | None
    unused_days: int | None
    cache: CacheFigures


class RouteCheckRecord(Record):
    """
    What a route answered just now. message is a sentence for people.

    status is the HTTP status of its answer, null without any; latency_ms is the time until its head, with those of
    looking up the name, connecting and the TLS handshake.
    """

    name: str
    url: str
    ok: bool
    status: int | None
    latency_ms: int | None
    message: str


class UpstreamCheck(Record):
    """The result of a check; ok is true if all routes are."""

    ok: bool
    routes: list[RouteCheckRecord]


class PurgeWish(Body):
    """
    What a purge removes: everything, or what meets all conditions that are given.

    package is the name of a package, pattern a glob for names. older_than (seconds, or a text such as 12h or 30d): only
    what was last fetched, or confirmed by an upstream, before that. documents_only keeps files. With limits, only what
    exceeds the limits of the cache (max_bytes, unused_days) is removed, as every hour, and no condition is given.
    """

    package: Word | None = None
    pattern: Pattern | None = None
    older_than: Seconds | Duration | None = None
    documents_only: bool = False
    limits: bool = False
    dry_run: bool = False


class Purged(Record):
    """
    What was removed, or would be with dry_run.

    packages counts those of which files were removed; versions counts manifests of images, too, and files manifests and
    blobs. freed_bytes is their size with that of documents (answers about packages); garbage collection frees it.
    """

    packages: int
    versions: int
    files: int
    documents: int
    freed_bytes: int
    dry_run: bool

    @classmethod
    def of(cls, report: PurgeReport, *, dry_run: bool) -> Purged:
        """The record of a report."""
        return cls.from_attributes(report, freed_bytes=report.size + report.document_size, dry_run=dry_run)
