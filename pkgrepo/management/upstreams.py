"""The upstreams of proxy repositories, and what is cached of them: health, checks, purges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import DRY_RUN, Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, run_job
from pkgrepo.management.repositories.routes import state_of
from pkgrepo.model import Repository, RepositoryType, UpstreamHealth
from pkgrepo.proxy.checks import check_routes
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.purge import PURGE, PurgeReport, Selection
from pkgrepo.proxy.route_schema import Duration, Pattern, Seconds
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.server.upstream_states import down_routes
from pkgrepo.storage.catalog.upstream_documents import DocumentFigures, document_figures
from pkgrepo.storage.catalog.usage_counts import CacheCounts, cache_counts
from pkgrepo.untrusted.text import seconds_of

table = Table("upstreams")


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


class PurgeRequest(Body):
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


@table.get("/repository/<repository>/upstream", EDITORS, "Show the upstreams of a proxy repository")
async def show_upstreams(call: Call) -> UpstreamRecord:
    """With their health, and how much is kept of them. Repositories of other types have no upstreams (404)."""
    repository = proxy_of(await call.fresh_repository())
    counts = await call.catalog.look(cache_counts, repository.id)
    figures = {each.route: each for each in await call.catalog.scan(document_figures, repository.id)}
    config = proxy_config_of(repository)
    health = call.shared.proxy.upstreams.health
    down = {name for id_, name in await call.catalog.look(down_routes) if id_ == repository.id}
    document_bytes = sum(each.size for each in figures.values())
    return UpstreamRecord(
        routes=[
            _route(each, health(repository.id, each), figures.get(each.name), down=each.name in down)
            for each in config.routes
        ],
        documents=sum(each.count for each in figures.values()),
        document_bytes=document_bytes,
        cached_bytes=repository.bytes_used + document_bytes,
        max_bytes=config.max_bytes,
        unused_days=config.unused_days,
        cache=CacheFigures.of(counts),
    )


@table.post(
    "/repository/<repository>/upstream/check",
    EDITORS,
    "Ask the upstreams of a proxy repository",
    audit="upstream.check",
)
async def check_upstreams(call: Call) -> UpstreamCheck:
    """
    Sends one small request to each route, over a new connection, and waits for 15 seconds at most.

    The status is 200 also if a route fails. Repositories of other types have no upstreams (404).
    """
    repository = proxy_of(call.repository)
    format_ = call.services.formats[repository.format]
    found = await check_routes(call.shared.proxy.upstreams, repository, format_.probes, format_.authorize)
    return UpstreamCheck(
        ok=all(each.ok for each in found),
        routes=[
            RouteCheckRecord.from_attributes(each, name=each.route.name, url=each.route.url, message=each.sentence)
            for each in found
        ],
    )


def proxy_of(repository: Repository) -> Repository:
    """The repository. :raises NotFound: it is no proxy"""
    if repository.type is not RepositoryType.PROXY:
        raise NotFound("proxy repository", repository.path)
    return repository


def _route(route: Route, health: UpstreamHealth | None, figures: DocumentFigures | None, *, down: bool) -> RouteRecord:
    """The record of a route; ``down``: some process of the server has noted that."""
    latency_s = None if health is None else health.latency_s
    return RouteRecord(
        name=route.name,
        url=route.url,
        priority=route.priority,
        state=state_of(health, down=down),
        last_error=None if health is None else health.last_error,
        last_success_at=None if health is None else health.last_success_at,
        last_failure_at=None if health is None else health.last_failure_at,
        latency_ms=None if latency_s is None else round(latency_s * 1000),
        successes=0 if health is None else health.successes,
        failures=0 if health is None else health.failures,
        limited_until=None if health is None else health.limited_until,
        documents=0 if figures is None else figures.count,
        document_bytes=0 if figures is None else figures.size,
        last_checked_at=None if figures is None else from_ms(figures.checked_ms),
    )


@table.post(
    "/repository/<repository>/cache/purge",
    EDITORS,
    "Purge the cache of a proxy repository",
    query=(WAIT, DRY_RUN),
    audit="cache.purge",
    further=STILL_RUNNING,
)
async def purge_cache(call: Call, body: PurgeRequest) -> Purged | Response:
    """
    Removes cached packages, and what is known about packages. An empty body removes everything.

    One purge runs at a time in each repository: while another one runs, the answer is 409 with its Location.
    Repositories of other types have no cache (404).
    """
    repository, dry = proxy_of(call.repository), body.dry_run or call.flag("dry_run")
    selection, actor, purge = _selection(call, body), call.actor, call.services.cache_purge
    given = {name: value for name, value in msgspec.to_builtins(body).items() if value not in (None, False)}

    async def work(progress: Progress) -> Mapping[str, Any]:
        await call.shared.proxy.settle()
        if body.limits:
            report = await purge.evict(repository, actor, progress, dry_run=dry)
        else:
            report = await purge.purge(repository, selection, actor, progress, dry_run=dry)
        found: Mapping[str, Any] = msgspec.to_builtins(Purged.of(report, dry_run=dry))
        call.services.callers.audit_log.enqueue(call.entry(detail={**given, **found}))
        return found

    data = {"on": f"repository {repository.path!r}"}
    job = await run_job(call, kind=PURGE, key=repository.uid, data=data, work=work)
    call.audited = True  # by the work, which may end after the call
    return job if isinstance(job, Response) else msgspec.convert(job.result, Purged)


def _selection(call: Call, body: PurgeRequest) -> Selection:
    chosen = body.package, body.pattern, body.older_than
    if body.limits and (body.documents_only or any(each is not None for each in chosen)):
        raise Invalid("limits takes no conditions", "/limits")
    older_s = None if body.older_than is None else seconds_of(body.older_than)
    format_ = call.format
    return Selection(
        package=None if body.package is None else format_.package_key(body.package),
        pattern=body.pattern,
        before_ms=None if older_s is None else call.now_ms - int(older_s * 1000),
        documents_only=body.documents_only,
    )
