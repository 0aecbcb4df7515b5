"""The upstreams of proxy repositories, and what is cached of them: health, checks, purges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from attrs import evolve

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.format import Format
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.management.api.access_rules import EDITORS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import DryRun, HitRatio, Misses
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.route import DRY_RUN, Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, run_job
from pkgrepo.management.repositories.routes import state_of
from pkgrepo.management.repositories.stored import pointing_into, storable, validated
from pkgrepo.model import Repository, RepositoryType, UpstreamHealth
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.address_remarks import remarks_on
from pkgrepo.proxy.checks import check_routes
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.purge import PURGE, PurgeReport, Selection
from pkgrepo.proxy.route_schema import Duration, Pattern, Seconds
from pkgrepo.proxy.upstream.instances import UNSAVED
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.format import load_formats
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.server.upstream_states import down_routes
from pkgrepo.storage.catalog.upstream_documents import DocumentFigures, document_figures
from pkgrepo.storage.catalog.usage_counts import CacheCounts, cache_counts
from pkgrepo.untrusted.text import seconds_of

table = Table("upstreams")


class CacheFigures(Record):
    """
    How the cache of a proxy repository was used, since it exists.

    Metadata that is sent again from memory is not counted.
    """

    hits: Annotated[int, meaning("Requests that were answered with what is kept.")]
    misses: Misses
    confirmed: Annotated[int, meaning("Requests that were answered with what is kept, after an upstream confirmed it.")]
    stale_served: Annotated[int, meaning("Requests that were answered with what is kept, because an upstream failed.")]
    absent: Annotated[int, meaning("Requests for what no upstream has.")]
    hit_ratio: HitRatio
    saved_bytes: Annotated[int, meaning("The size in bytes of the kept files that were sent.")]
    fetched_bytes: Annotated[int, meaning("The size in bytes of what upstreams sent.")]
    upstream_seconds: Annotated[float, meaning("How long upstreams took in all, in seconds.")]

    @classmethod
    def of(cls, counts: CacheCounts) -> CacheFigures:
        """The record of the counts of a repository."""
        return cls.from_attributes(counts, stale_served=counts.stale, upstream_seconds=counts.upstream_ms / 1000)


class RouteRecord(Record):
    """
    A route of a proxy repository, as this server process knows it.

    state is that of its circuit breaker: closed (requests are sent), open (none are), half_open (the next one decides)
    or unused. The counts begin with the start of the server or a change of the route.
    """

    name: Annotated[str, meaning("The name of the route.")]
    url: Annotated[str, meaning("The address of the upstream.")]
    priority: Annotated[int, meaning("The priority; higher ones are asked first.")]
    state: Annotated[str, meaning("The state of its circuit breaker: closed, open, half_open or unused.")]
    last_error: Annotated[str | None, meaning("The last error; null if there was none.")]
    last_success_at: Annotated[datetime | None, meaning("When a request last succeeded; null for never.")]
    last_failure_at: Annotated[datetime | None, meaning("When a request last failed; null for never.")]
    latency_ms: Annotated[
        int | None, meaning("How long upstream requests take, in milliseconds; null if none was sent.")
    ]
    successes: Annotated[
        int, meaning("Requests that succeeded since the start of the server or a change of the route.")
    ]
    failures: Annotated[int, meaning("Requests that failed since the start of the server or a change of the route.")]
    limited_until: Annotated[
        datetime | None, meaning("Until when the upstream wants no more requests; null if it does not say so.")
    ]
    documents: Annotated[int, meaning("How many answers about packages are kept from it.")]
    document_bytes: Annotated[int, meaning("The size of the answers that are kept from it, in bytes.")]
    last_checked_at: Annotated[datetime | None, meaning("When it was last checked; null for never.")]


class UpstreamRecord(Record):
    """The upstreams of a proxy repository, in the order in which they are asked, and what is kept of them."""

    routes: Annotated[list[RouteRecord], meaning("The upstreams in the order in which they are asked.")]
    documents: Annotated[int, meaning("How many answers about packages are kept, also of routes that were removed.")]
    document_bytes: Annotated[int, meaning("The size of the kept answers about packages, in bytes.")]
    cached_bytes: Annotated[int, meaning("The size of kept documents and files together, in bytes.")]
    max_bytes: Annotated[int | None, meaning("The limit of cached_bytes; null for no limit.")]
    unused_days: Annotated[int | None, meaning("The days after which what was not used is removed; null for never.")]
    cache: Annotated[CacheFigures, meaning("How the cache was used.")]


class RouteCheckRecord(Record):
    """What a route answered just now."""

    name: Annotated[str, meaning("The name of the route.")]
    url: Annotated[str, meaning("The address of the upstream.")]
    ok: Annotated[bool, meaning("Whether the route can be used.")]
    status: Annotated[int | None, meaning("The HTTP status of the response; null without any.")]
    latency_ms: Annotated[
        int | None, meaning("The time until its head in milliseconds, with those of name, connection and TLS.")
    ]
    message: Annotated[str, meaning("A sentence for people.")]
    remarks: Annotated[list[str], meaning("What is unusual about the address, as sentences; hints, no faults.")]


class UpstreamCheck(Record):
    """The result of a check; ok is true if all routes are."""

    ok: Annotated[bool, meaning("Whether all routes are.")]
    routes: Annotated[list[RouteCheckRecord], meaning("What the routes answered.")]


class Trial(Body):
    """What is asked before it is saved: a configuration as that of a repository; without one, the one that is saved."""

    config: Annotated[
        dict[str, Any] | None,
        meaning("A configuration of the type Proxy; a secret *** is that of the same route in the saved one."),
    ] = None


class NewTrial(Body):
    """A configuration of a repository that is not there yet."""

    format: Annotated[str, meaning("The name of the format.")]
    config: Annotated[dict[str, Any], meaning("A configuration of the type Proxy.")]


class PurgeRequest(Body):
    """
    What a purge removes: everything, or what meets all conditions that are given.

    With limits, only what exceeds the limits of the cache (max_bytes, unused_days) is removed, as every hour, and no
    condition is given.
    """

    package: Annotated[Word | None, meaning("Only what is of this package.")] = None
    pattern: Annotated[Pattern | None, meaning("Only what is of packages whose names match this glob.")] = None
    older_than: Annotated[
        Seconds | Duration | None,
        meaning("Only what was last fetched or confirmed before that: seconds, or a text such as 12h or 30d."),
    ] = None
    documents_only: Annotated[bool, meaning("Whether files are kept.")] = False
    limits: Annotated[bool, meaning("Only what exceeds the limits of the cache, without other conditions.")] = False
    dry_run: Annotated[bool, meaning("Whether nothing is removed, and the answer is what would be.")] = False


class Purged(Record):
    """What was removed, or would be with dry_run."""

    packages: Annotated[int, meaning("How many packages lost files.")]
    versions: Annotated[int, meaning("How many versions were removed; of images, manifests.")]
    files: Annotated[int, meaning("How many files were removed; of images, manifests and blobs.")]
    documents: Annotated[int, meaning("How many kept answers about packages were removed.")]
    freed_bytes: Annotated[int, meaning("Their size in bytes, which garbage collection frees.")]
    dry_run: DryRun

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
async def check_upstreams(call: Call, body: Trial) -> UpstreamCheck:
    """
    Sends one small request to each route, over a new connection, and waits for 15 seconds at most.

    With config the routes of a configuration are asked that could be saved, and nothing is saved. The status is 200
    also if a route fails. Repositories of other types have no upstreams (404). A caller who asks too often gets 429.
    """
    repository = proxy_of(await call.fresh_repository())
    if body.config is not None:
        repository = await _tried(call, call.services.formats[repository.format], body.config, repository)
    return await _checked(call, repository)


@table.post(
    "/upstream/check", SYSTEM_MANAGERS, "Ask the upstreams of a proxy before it is made", audit="upstream.check"
)
async def check_new_upstreams(call: Call, body: NewTrial) -> UpstreamCheck:
    """As that of a repository, for a configuration with which one could be made. Nothing is saved."""
    format_ = get_format(call.services.formats, body.format, "/format")
    await load_formats([format_], call.shared.pools.cpu)
    return await _checked(call, await _tried(call, format_, body.config, None))


async def _tried(call: Call, format_: Format, config: dict[str, Any], before: Repository | None) -> Repository:
    """
    A repository that is as ``before`` with another configuration, which is checked as one that is saved.

    :raises Invalid, Forbidden: it could not be saved
    """
    fixed, settings = validated(format_, config, "/config", before)
    if fixed["type"] != RepositoryType.PROXY:
        raise Invalid("only proxies have upstreams", "/config/type")
    with pointing_into("/config"):
        fixed = await storable(call, fixed, before)
    if before is not None:
        return evolve(before, id=UNSAVED, config=fixed, settings=settings)
    made = make_placeholder(UNSAVED, "", "", format_.name)
    return evolve(made, type=RepositoryType.PROXY, config=fixed, settings=settings)


async def _checked(call: Call, repository: Repository) -> UpstreamCheck:
    upstreams = call.shared.proxy.upstreams
    wait_s = upstreams.checks.take(call.actor.name)
    if wait_s:
        retry = ((b"Retry-After", b"%d" % wait_s),)
        sentence = f"upstreams were asked too often; try again in {wait_s} seconds"
        raise Refusal(429, sentence, "too_many_checks", headers=retry)
    format_ = call.services.formats[repository.format]
    found = await check_routes(upstreams, repository, format_.probes, format_.authorize)
    return UpstreamCheck(
        ok=all(each.ok for each in found),
        routes=[
            RouteCheckRecord.from_attributes(
                each,
                name=each.route.name,
                url=each.route.url,
                message=each.sentence,
                remarks=list(remarks_on(format_.address, each.route.url)),
            )
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
