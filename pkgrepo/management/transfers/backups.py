"""The routes of backups: what is known of them, and a run on request."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.repositories.clock import from_ms

table = Table("server")


class BackupRecord(Record):
    """
    The backups of the server; times are null for never.

    destination is empty if the server makes none. problem says what is wrong; it is empty if nothing is. made_at is
    the time of the newest backup, with its id, blobs and bytes, of which copied were not there before; lost are those
    that the server itself has lost. failed_at is when a later run failed, for the reason in problem. checked_at is when
    the last check ended, which fetched so many files, and proved_at when the last green one did; damage are sentences
    about what a red one has found.
    """

    destination: str
    schedule: str
    keep: int
    checks: bool
    with_key: bool
    next_at: datetime | None
    problem: str
    id: str
    made_at: datetime | None
    took_ms: int
    blobs: int
    bytes: int
    copied: int
    copied_bytes: int
    lost: int
    backups: int
    failed_at: datetime | None
    checked_at: datetime | None
    proved_at: datetime | None
    fetched: int
    damage: list[str]


class BackedUp(Record):
    """The result of a backup: its id, how many blobs it has, how many were copied, and how many backups are kept."""

    job_id: str
    id: str
    blobs: int
    bytes: int
    copied: int
    copied_bytes: int
    lost: int
    removed: int
    backups: int
    fetched: int
    errors: list[str]


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
