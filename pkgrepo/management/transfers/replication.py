"""The routes of repositories that follow one of another server: how far they are, and a comparison on request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.format import Format
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import EDITORS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call, must_do
from pkgrepo.management.api.fields import DryRun, RepositoryPath
from pkgrepo.management.api.names import check_independent
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, run_job
from pkgrepo.management.repositories.stored import validated, whole
from pkgrepo.model import Action
from pkgrepo.model.structs import meaning
from pkgrepo.replication.promotion import JOB, find_missing, hosted_settings, prepare, promote
from pkgrepo.replication.status import ReplicaStatus, read_status
from pkgrepo.repositories.configuration import agreed
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.server.replicas import compare_again

CONFIRM = Parameter("confirm", "The name or path of the repository, as confirmation; required without dry_run.")

table = Table("repositories")


class ReplicationRecord(Record):
    """How far a repository has followed another one."""

    state: Annotated[str, meaning("waiting (nothing was read yet), comparing, following or failing.")]
    source: Annotated[str, meaning("The address of the server and the repository there.")]
    files: Annotated[list[str], meaning("Patterns of what is fetched at once.")]
    cursor: Annotated[str, meaning("The last event there whose effects are noted.")]
    lag_events: Annotated[int, meaning("Events that are not read and tasks that are not done.")]
    lag_seconds: Annotated[
        float | None, meaning("For how long it is behind, 0 if nothing is left; null if that was never so.")
    ]
    tasks: Annotated[int, meaning("How many versions, tags and packages wait to be renewed or fetched.")]
    failed_tasks: Annotated[int, meaning("How many of the tasks have failed, and are tried again.")]
    error: Annotated[str, meaning("Why it fails; empty if it does not.")]
    failing_since: Annotated[datetime | None, meaning("Since when it fails; null if it does not.")]
    compared_at: Annotated[datetime | None, meaning("When the last full comparison began; null for never.")]
    compared_because: Annotated[str, meaning("The reason of the last full comparison.")]
    checked_at: Annotated[datetime | None, meaning("When the upstream last answered; null for never.")]
    current_at: Annotated[datetime | None, meaning("When nothing was left to do; null for never.")]

    measured = frozenset({"lag_seconds"})


@table.command(
    "repo replication STORAGE/REPOSITORY",
    "{:replicated}",
    notes="error",
    about="Print how far a repository has followed the one of another server.",
)
@table.get("/repository/<repository>/replication", EDITORS, "Show how far a repository has followed another one")
async def show_replication(call: Call) -> ReplicationRecord:
    """A repository that follows no other one has no replication (404)."""
    return _record(await _find(call))


@table.command(
    "repo replication STORAGE/REPOSITORY --compare",
    "{:replicated}",
    notes="error",
    said={"--compare": "Compare everything anew, and try what failed."},
)
@table.post(
    "/repository/<repository>/replication/compare",
    EDITORS,
    "Compare a repository with the one that it follows",
    audit="replication.compare",
)
async def compare(call: Call) -> ReplicationRecord:
    """
    Everything that is kept is compared anew, and what is wanted and missing is fetched. Tasks that failed are tried.

    A repository of which nothing was read yet is compared as soon as its upstream answers (409).
    """
    await _find(call)
    unread = Conflict(f"nothing of what {call.repository.path} follows was read yet: it is compared then")
    await call.write(call.entry(), must_do(compare_again, unread), call.repository.id, call.now_ms)
    return _record(await _find(call))


async def _find(call: Call) -> ReplicaStatus:
    found: ReplicaStatus | None = await call.catalog.scan(read_status, await call.fresh_repository(), call.now_ms)
    if found is None:
        raise NotFound("replication of repository", call.repository.path)
    return found


def _record(found: ReplicaStatus) -> ReplicationRecord:
    return ReplicationRecord.from_attributes(
        found,
        files=list(found.files),
        cursor=found.position,
        lag_seconds=None if found.lag_s is None else round(found.lag_s, 1),
        compared_because=found.reason,
    )


class PromotedReplica(Record):
    """
    What became of a promotion: missing is how many files or versions are known to be at the upstream and are not kept.

    With dry_run nothing was changed.
    """

    repository: RepositoryPath
    missing: Annotated[int, meaning("How many files or versions are known to be at the upstream and are not kept.")]
    first: Annotated[list[str], meaning("The first 100 of them.")]
    dry_run: DryRun


@table.post(
    "/repository/<repository>/replication/promote",
    SYSTEM_MANAGERS,
    "Make a hosted repository of a proxy that follows another one",
    query=(WAIT, CONFIRM, DRY_RUN),
    audit="replication.promote",
    further=STILL_RUNNING,
)
async def promote_replica(call: Call) -> PromotedReplica | Response:
    """
    For the day on which the other server does not come back. The repository keeps all that it has, and takes uploads.

    Without dry_run, confirm must be the name or the path of the repository (422 otherwise). What is missing is not
    fetched any more. The configuration of the upstream is in the audit log afterwards, without its secrets.
    """
    repository, dry = await call.fresh_repository(), call.flag("dry_run")
    if not await call.may(Action.READ, repository):  # a token for the server alone learns nothing of its content
        raise unknown(call.identity, repository.path)
    check_independent(repository)
    await _find(call)
    if call.query("confirm") not in (repository.name, repository.path) and not dry:
        raise Invalid(f"add ?confirm={repository.name} to make {repository.path} a hosted repository", "confirm")
    format_, before = call.format, whole(call, repository)
    fixed, settings = _hosted_config(format_, agreed(repository.config) | hosted_settings(repository.settings))

    async def work(progress: Progress) -> Mapping[str, Any]:
        await call.shared.proxy.settle()
        missing = await find_missing(call.catalog, call.shared.proxy.documents, repository, format_, progress)
        if not dry:
            await prepare(call.shared.content, call.catalog, repository, format_.index, progress)
            detail = {"missing": missing.count, "first": missing.first[:20], "before": before}
            promoted = await call.services.callers.audit_log.write(
                call.entry(detail=detail),
                promote,
                repository,
                indexer=format_.index,
                companions=call.services.companions,
                config=fixed,
                settings=settings,
                actor=call.actor,
                now_ms=call.now_ms,
            )
            call.services.on_change(promoted)
        found = PromotedReplica(repository=repository.path, missing=missing.count, first=missing.first, dry_run=dry)
        result: Mapping[str, Any] = msgspec.to_builtins(found)
        return result

    data = {"on": f"repository {repository.path!r}"}
    job = await run_job(call, kind=JOB, key=repository.uid, data=data, work=work)
    call.audited = True  # by the work, which may end after the call
    return job if isinstance(job, Response) else msgspec.convert(job.result, PromotedReplica)


def _hosted_config(format_: Format, settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The configuration of a hosted repository with those settings of a proxy that it takes.

    :raises Invalid: it does not take the rules or the visibility of the proxy, which must not be lost
    """
    given = dict(settings)
    while True:
        try:
            return validated(format_, {"type": "Hosted", **given}, "")
        except Invalid as error:
            name = (error.pointer or "").removeprefix("/").partition("/")[0]
            if name not in given or name in ("policy", "auth"):
                raise
            del given[name]  # of the proxies of its format
