"""The routes of backups: what is known of them, and a run on request."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import Errors, JobId, ProblemSentence
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms

table = Table("server")


class BackupRecord(Record):
    """The backups of the server; times are null for never."""

    destination: Annotated[str, meaning("Where backups go; empty if the server makes none.")]
    schedule: Annotated[str, meaning("When backups are made.")]
    keep: Annotated[int, meaning("How many backups are kept.")]
    checks: Annotated[bool, meaning("Whether backups are checked.")]
    with_key: Annotated[bool, meaning("Whether backups have the key that opens secrets.")]
    next_at: Annotated[datetime | None, meaning("When the next backup begins; null for never.")]
    problem: ProblemSentence
    id: Annotated[str, meaning("The id of the newest backup.")]
    made_at: Annotated[datetime | None, meaning("The time of the newest backup; null for never.")]
    took_ms: Annotated[int, meaning("How long it took, in milliseconds.")]
    blobs: Annotated[int, meaning("How many blobs it has.")]
    bytes: Annotated[int, meaning("The size of its blobs, in bytes.")]
    copied: Annotated[int, meaning("How many of the blobs were not there before.")]
    copied_bytes: Annotated[int, meaning("The size of the blobs that were copied, in bytes.")]
    lost: Annotated[int, meaning("How many blobs the server itself has lost.")]
    backups: Annotated[int, meaning("How many backups are kept.")]
    failed_at: Annotated[datetime | None, meaning("When a later run failed; null if none did.")]
    checked_at: Annotated[datetime | None, meaning("When the last check ended; null for never.")]
    proved_at: Annotated[datetime | None, meaning("When the last check ended that found nothing; null for never.")]
    fetched: Annotated[int, meaning("How many files the last check fetched.")]
    damage: Annotated[list[str], meaning("Sentences about what the last check found.")]


class BackedUp(Record):
    """The result of a backup: its id, how many blobs it has, how many were copied, and how many backups are kept."""

    job_id: JobId
    id: Annotated[str, meaning("The id of the backup.")]
    blobs: Annotated[int, meaning("How many blobs it has.")]
    bytes: Annotated[int, meaning("The size of its blobs, in bytes.")]
    copied: Annotated[int, meaning("How many of the blobs were not there before.")]
    copied_bytes: Annotated[int, meaning("The size of the blobs that were copied, in bytes.")]
    lost: Annotated[int, meaning("How many blobs the server itself has lost.")]
    removed: Annotated[int, meaning("How many old backups were removed.")]
    backups: Annotated[int, meaning("How many backups are kept.")]
    fetched: Annotated[int, meaning("How many files the check fetched.")]
    errors: Errors


@table.get("/system/backup", SYSTEM_MANAGERS, "Show the backups of the server")
async def show_backups(call: Call) -> BackupRecord:
    """The settings of backups (backup.destination and others), when the last one was made, and whether it is sound."""
    runs = call.services.backups
    plan, state = runs.plan, await runs.state()
    return BackupRecord.from_attributes(
        state,
        destination="" if plan is None else plan.options.destination.address,
        schedule="" if plan is None else plan.schedule,
        keep=0 if plan is None else plan.options.keep,
        checks=plan is not None and plan.check is not None,
        with_key=plan is not None and plan.options.with_key,
        next_at=await runs.next_at(),
        problem=await runs.problem(),
        made_at=_time(state.made_ms),
        failed_at=_time(state.failed_ms),
        checked_at=_time(state.checked_ms),
        proved_at=_time(state.proved_ms),
        damage=list(state.damage),
    )


@table.post(
    "/system/backup",
    SYSTEM_MANAGERS,
    "Make a backup",
    query=(WAIT,),
    audit="backup.run",
    further=STILL_RUNNING,
)
async def make_backup(call: Call) -> BackedUp | Response:
    """
    Makes a backup now, and checks it, as the schedule does; 409 without a destination (backup.destination).

    One runs at a time: while another one runs, the answer is 409 with its Location.
    """
    call.object = "backup"
    job = await answer_job(call, partial(call.services.backups.begin, call.actor.name))
    if isinstance(job, Response):
        return job
    result: dict[str, Any] = {"fetched": 0, **job.result}
    return BackedUp(job_id=job.uid, **result)


def _time(ms: int) -> datetime | None:
    return from_ms(ms) if ms else None
