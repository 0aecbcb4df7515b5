"""
The routes of retention: the rules that hold for every repository, and the preview and runs in a repository.

The rules of a repository are a part of its configuration.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import DryRun, PackageName, RuleName, Size, VersionName
from pkgrepo.management.api.names import check_independent
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, run_job
from pkgrepo.model import Action, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.configuration import Retention, check_retention, is_expression
from pkgrepo.repositories.retention.rules import together
from pkgrepo.repositories.retention.run import KIND, retention_of
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.repositories.version_ranges import is_plain
from pkgrepo.storage.catalog.server import settings

DEFAULT_LIMIT = 10_000
MOST = 100_000
LIMIT = Parameter(
    "limit", f"With dry_run: how many victims to list, {DEFAULT_LIMIT:,} by default, {MOST:,} at most.", "integer"
)
CONFIRM = Parameter("confirm", "Remove also more than max_delete_percent of the repository.", "boolean")

REMOVERS = AccessRule("the action admin in the repository", action=Action.ADMIN, content=True)

table = Table("repositories")
server_table = Table("server")


class RetentionWish(Body):
    """Rules to preview instead of those of the repository, in the form of its configuration."""

    retention: Annotated[Retention | UnsetType, meaning("The rules to preview, in the form of the configuration.")] = (
        UNSET
    )


class VictimRecord(Record):
    """Something that goes: a version, a build of a snapshot, a manifest with its tags, or a tag."""

    package: PackageName
    version: VersionName
    action: Annotated[str, meaning("trash, delete, untag or evict.")]
    rule: RuleName
    reason: Annotated[str, meaning("Why the rule selects it.")]
    size: Size


class RetentionRecord(Record):
    """
    What retention would remove, or has removed.

    action is evict in the cache of a proxy. over_limits are the first versions and manifests there that exceed
    max_bytes or unused_days of the cache (the rule), with dry_run; over_limits_bytes is what they have in all, with
    answers of upstreams. They go within an hour, whatever the rules are, unless they are pinned. With
    needs_confirmation a run removes nothing unless the query has confirm=true: it is more than max_delete_percent.
    """

    dry_run: DryRun
    job_id: Annotated[str | None, meaning("The id of the job; null for a preview.")]
    victims: Annotated[list[VictimRecord], meaning("The first of what goes.")]
    truncated: Annotated[bool, meaning("Whether there are more than are listed.")]
    count: Annotated[int, meaning("How many versions, builds, tags and manifests are selected.")]
    examined: Annotated[int, meaning("How many were examined.")]
    percent: Annotated[float, meaning("The part of the examined that are selected, in percent.")]
    bytes: Annotated[
        int, meaning("The size of the selected in bytes, which the repository uses until they have left the trash.")
    ]
    max_delete_percent: Annotated[int, meaning("The percentage above which a run needs a confirmation.")]
    needs_confirmation: Annotated[bool, meaning("Whether a run removes nothing without confirm=true.")]
    removed: Annotated[int, meaning("How many were removed.")]
    freed_bytes: Annotated[int, meaning("The size in bytes of what was removed.")]
    errors: Annotated[list[str], meaning("Sentences about packages that were left as they are.")]
    over_limits: Annotated[
        list[VictimRecord], meaning("The first of what exceeds the limits of the cache and goes within an hour.")
    ] = []
    over_limits_bytes: Annotated[int, meaning("What exceeds the limits of the cache in all, in bytes.")] = 0


class ServerRetention(Body):
    """The rules that hold for every hosted repository, with match.cached for every cache; null removes them."""

    retention: Annotated[Retention | None, meaning("The rules that hold for every hosted repository; null for none.")]


class ServerRetentionRecord(Record):
    """The rules that hold for every hosted repository, null if there are none."""

    retention: Annotated[Retention | None, meaning("The rules that hold for every hosted repository; null for none.")]


@server_table.get("/system/retention", SYSTEM_MANAGERS, "Show the retention of the server")
async def show_server_retention(call: Call) -> ServerRetentionRecord:
    """The rules that hold for every hosted repository in addition to its own, in the same form."""
    return ServerRetentionRecord(retention=_server_retention(call))


@server_table.put(
    "/system/retention",
    SYSTEM_MANAGERS,
    "Set the retention of the server",
    audit="retention.update",
    conditional=True,
)
async def set_server_retention(call: Call, body: ServerRetention) -> ServerRetentionRecord:
    """
    The rules hold for every hosted repository in addition to its own; what a rule of either keeps stays.

    Those with match.cached hold for the caches of proxies, and no others do.

    The schedule and max_delete_percent are for repositories without enabled rules of their own. Versions are patterns
    or regular expressions: ranges mean something else in each format (422).
    """
    call.check_unchanged(ServerRetentionRecord(retention=_server_retention(call)))
    if body.retention is not None:
        check_retention(body.retention, None)
        for index, rule in enumerate(body.retention.rules):
            text = rule.match.versions
            if text and not is_expression(text) and not is_plain(text):
                pointer = f"/retention/rules/{index}/match/versions"
                raise Invalid("a range means something else in each format: write it in a repository", pointer)
    value = None if body.retention is None else msgspec.to_builtins(body.retention)
    rules = None if value is None else msgspec.json.encode(value).decode()
    await call.write(call.entry("server", {"retention": value}), settings.set_retention, rules)
    return ServerRetentionRecord(retention=body.retention)


def _server_retention(call: Call) -> Retention | None:
    found = call.registry.retention
    return None if found is None else msgspec.convert(found, Retention)


@table.post(
    "/repository/<repository>/retention",
    REMOVERS,
    "Preview or run the retention of a repository",
    query=(DRY_RUN, CONFIRM, LIMIT, WAIT),
    audit="repository.retention",
    further=STILL_RUNNING,
)
async def run_retention(call: Call, body: RetentionWish) -> RetentionRecord | Response:
    """
    With dry_run it lists what would go and removes nothing; the body may then have other rules to try.

    A run is a job; one runs at a time on each repository: while another one does, the answer is 409 with its Location.
    A run that would remove more than max_delete_percent removes nothing unless the query has confirm. What the rules
    take of the cache of a proxy is evicted. Virtual repositories have no rules (409).
    """
    repository, work = call.repository, call.services.retention
    check_independent(repository)
    if repository.type is RepositoryType.VIRTUAL:
        raise Conflict("a virtual repository has no rules of retention: its members do")
    cached = repository.type is RepositoryType.PROXY
    retention = retention_of(repository, call.registry)
    if body.retention is not UNSET:
        if not call.flag("dry_run"):
            raise Invalid("other rules than those of the repository can only be tried with dry_run", "/retention")
        check_retention(body.retention, repository.type)
        retention = together(body.retention, _server_retention(call), cached=cached)
    if retention is None and cached and call.flag("dry_run"):
        retention = Retention(enabled=False)  # the limits of a cache are shown also without rules
    if retention is None:
        raise Conflict(f"repository {repository.path} has no rules of retention")
    if call.flag("dry_run"):
        limit = call.integer("limit", DEFAULT_LIMIT, 0, MOST)
        report = await work.preview(repository, retention, NoProgress(), limit=limit)
        shown = report.to_json(retention, dry_run=True)
        if cached:
            shown |= await _over_limits(call, limit)
        return msgspec.convert({**shown, "job_id": None}, RetentionRecord)
    confirmed = call.flag("confirm")
    data = {"on": repository.path, "dry_run": False, "confirm": confirmed}
    job = await run_job(
        call,
        kind=KIND,
        key=repository.uid,
        data=data,
        work=partial(work.run, repository, retention, call.actor, confirmed),
    )
    if isinstance(job, Response):
        return job
    return msgspec.convert({**job.result, "job_id": job.uid}, RetentionRecord)


async def _over_limits(call: Call, limit: int) -> dict[str, Any]:
    """What exceeds the limits of a cache, for the record of a preview."""
    found = await call.services.cache_purge.evict(call.repository, call.actor, NoProgress(), dry_run=True, listed=limit)
    over = [
        {
            "package": unit.package_key,
            "version": unit.name,
            "action": "evict",
            "rule": rule,
            "reason": f"{rule}: not used since {from_ms(unit.used_ms):%Y-%m-%d}",
            "size": unit.size,
        }
        for unit, rule in found.first
    ]
    return {"over_limits": over, "over_limits_bytes": found.size + found.document_size}
