"""
Background jobs: their state, lease and result.

=========  ==============================================  =====================================================
state      changes to                                      after a crash
=========  ==============================================  =====================================================
running    done, failed or cancelled, by the process       the row stays; when the lease has expired, the start
           that holds the lease and renews it while the    of the next job of this kind and key sets it to failed,
           job runs                                        and a request to cancel it to cancelled
done       nothing                                         the row with its result stays
failed     nothing                                         the row with its result stays
cancelled  nothing                                         the row stays
=========  ==============================================  =====================================================

At most one job of each kind and key runs at a time, in all processes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import define, frozen

from pkgrepo.errors import Conflict, PkgrepoError, existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.events import SERVER, append_repository_event
from pkgrepo.storage.catalog.rows import (
    dump,
    every,
    find,
    is_set,
    load,
    non_null,
    optional_conditions,
    put,
    rows,
    scalar,
)

from .repositories import find_repository

LOST = "the process that ran this job has ended"
LONGEST_MS = 2**52  # longer than any job took: a running one comes after them
# Kinds of jobs whose end other programs are told of, and the kind of the event.
ANNOUNCED: Final[Mapping[str, str]] = {
    "gc": "gc.finished",
    "retention": "retention.finished",
    "backup": "backup.finished",
    "import": "import.finished",
}
RETENTION_MS = 7 * 86_400_000  # how long the row of an ended job is kept


@frozen
class Job:
    """
    One job: ``data`` are the parameters that it was started with, ``result`` is empty until it ends.

    ``progress`` are the parts of its work that have begun, as its process last noted them. ``lease_until`` is None once
    it has ended. ``cancel_asked``: its cancellation was requested.
    """

    id: int
    uid: str
    kind: str
    key: str
    state: str
    data: Mapping[str, Any]
    result: Mapping[str, Any]
    progress: Sequence[Mapping[str, Any]]
    cancel_asked: bool
    lease_until: datetime | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.finished_at is not None

    @property
    def took_ms(self) -> int:
        """The time from the start to the end in ms; ``LONGEST_MS`` while the job runs."""
        if self.finished_at is None:
            return LONGEST_MS
        return round((self.finished_at - self.created_at).total_seconds() * 1000)


@define
class JobRunning(PkgrepoError):  # noqa: N818 - named for what is the case
    """A job of the same kind and key is running already."""

    job: Job

    def __str__(self) -> str:
        return f"{self.job.kind} job {self.job.uid} is running on {self.job.data.get('on', self.job.key)}"


_JOB, _job = rows(Job, "job", progress=load, cancel_asked=("cancel_at", is_set))
_FILTERS = ("kind = ?", "state = ?")
JOB_ORDERS: Final[Mapping[str, Order[Job]]] = both_ways(
    {
        "created_at": [("id", int, lambda each: each.id)],
        "kind": [("kind", str, lambda each: each.kind), ("id", int, lambda each: each.id)],
        "state": [("state", str, lambda each: each.state), ("id", int, lambda each: each.id)],
        "took": [
            (f"COALESCE(finished_at - created_at, {LONGEST_MS})", int, lambda each: each.took_ms),
            ("id", int, lambda each: each.id),
        ],
    }
)


def begin_job(
    tx: Transaction,
    *,
    uid: str,
    kind: str,
    key: str,
    data: Mapping[str, Any],
    holder: str,
    until_ms: int,
    now_ms: int,
) -> Job:
    """
    Add a running job, leased to ``holder`` until ``until_ms``.

    A running job of the same kind and key whose lease has expired becomes failed. Rows of the same kind that ended
    more than ``RETENTION_MS`` ago are removed.

    :raises JobRunning: a job of the same kind and key is running
    """
    tx.execute("DELETE FROM job WHERE kind = ? AND finished_at < ?", (kind, now_ms - RETENTION_MS))
    tx.execute(
        """
        UPDATE job SET state = 'failed', result = ?, finished_at = ?
        WHERE kind = ? AND key = ? AND state = 'running' AND lease_until < ?
        """,
        (dump({"errors": [LOST]}), now_ms, kind, key, now_ms),
    )
    row = tx.one(f"{_JOB} WHERE kind = ? AND key = ? AND state = 'running'", (kind, key))
    if row is not None:
        raise JobRunning(_job(row))
    put(
        tx,
        "job",
        uid=uid,
        kind=kind,
        key=key,
        state="running",
        data=data,
        run_at=now_ms,
        lease_by=holder,
        lease_until=until_ms,
        attempts=1,
        created_at=now_ms,
    )
    return get_job(tx, uid)


def renew_job(tx: Transaction, uid: str, holder: str, until_ms: int, progress: Sequence[Mapping[str, Any]]) -> bool:
    """
    Extend the lease of a job to ``until_ms``, and note its progress.

    Returns whether the job shall be cancelled, which it shall also if the holder has lost the lease.
    """
    changed = tx.execute(
        "UPDATE job SET lease_until = ?, progress = ? WHERE uid = ? AND lease_by = ? AND state = 'running'",
        (until_ms, dump(progress), uid, holder),
    )
    return not changed or get_job(tx, uid).cancel_asked


def end_job(
    tx: Transaction,
    uid: str,
    holder: str,
    *,
    state: str,
    result: Mapping[str, Any],
    progress: Sequence[Mapping[str, Any]],
    now_ms: int,
) -> Job:
    """Set the final state, result and progress of a job. A job whose holder has lost the lease does not change."""
    changed = tx.execute(
        """
        UPDATE job SET state = ?, result = ?, progress = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE uid = ? AND lease_by = ? AND state = 'running'
        """,
        (state, dump(result), dump(progress), now_ms, uid, holder),
    )
    job = get_job(tx, uid)
    if changed and job.kind in ANNOUNCED:
        _announce(tx, job, now_ms)
    return job


def _announce(tx: Transaction, job: Job, now_ms: int) -> None:
    """Append the event of the end of a job, with the numbers of its result."""
    repository = find_repository(tx, str(job.data.get("repository", "")))
    data = {
        "name": job.data.get("on", job.key),
        "job": job.uid,
        "state": job.state,
        "result": {name: value for name, value in job.result.items() if isinstance(value, int | str)},
    }
    if job.state != "done" and job.result.get("errors"):
        data["error"] = job.result["errors"][0]
    repository_id = SERVER if repository is None else repository.id
    append_repository_event(tx, repository_id, ANNOUNCED[job.kind], data, SYSTEM, now_ms)


def end_all_jobs(tx: Transaction, now_ms: int) -> None:
    """Set every running job to failed: of a catalog that was restored no process runs any."""
    tx.execute(
        """
        UPDATE job SET state = 'failed', result = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE state = 'running'
        """,
        (dump({"errors": [LOST]}), now_ms),
    )


def find_holder(r: Reader, uid: str) -> str:
    """The process that holds the lease of a job; empty if it has ended."""
    return scalar(r, "SELECT lease_by FROM job WHERE uid = ? AND state = 'running'", (uid,)) or ""


def end_job_of(tx: Transaction, uid: str, holder: str, now_ms: int) -> None:
    """Set a job to failed whose process is known to have ended."""
    tx.execute(
        """
        UPDATE job SET state = 'failed', result = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE uid = ? AND lease_by = ? AND state = 'running'
        """,
        (dump({"errors": [LOST]}), now_ms, uid, holder),
    )


def cancel_job(tx: Transaction, uid: str, now_ms: int) -> Job:
    """
    Ask for the end of a running job. One whose lease has expired is cancelled at once.

    :raises NotFound: there is no such job; :raises Conflict: it has ended
    """
    job = existing(find_job(tx, uid), "job", uid)
    if job.ended:
        raise Conflict(f"the job has ended already: it is {job.state}")
    tx.execute("UPDATE job SET cancel_at = ? WHERE uid = ? AND cancel_at IS NULL", (now_ms, uid))
    tx.execute(
        """
        UPDATE job SET state = 'cancelled', result = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE uid = ? AND lease_until < ?
        """,
        (dump({"errors": [LOST]}), now_ms, uid, now_ms),
    )
    return get_job(tx, uid)


def find_job(r: Reader, uid: str) -> Job | None:
    """The job with this id, or None."""
    return find(r, _job, f"{_JOB} WHERE uid = ?", (uid,))


def get_job(r: Reader, uid: str) -> Job:
    """The job with this id, which must exist."""
    found = find_job(r, uid)
    assert found is not None
    return found


def list_jobs(
    r: Reader,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    kind: str = "",
    state: str = "",
    order: str = "-created_at",
) -> list[Job]:
    """A page of jobs in one of the ``JOB_ORDERS``, beginning after a position. An empty filter matches every job."""
    sorting = JOB_ORDERS[order]
    values = (kind or None, state or None)
    beyond = f"AND {sorting.beyond}" if after else ""
    sql = f"{_JOB} WHERE {optional_conditions(_FILTERS, values)} {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _job, sql, (*non_null(values), *after, limit))


def last_job(r: Reader, kind: str, key: str) -> Job | None:
    """The latest job of this kind and key, or None."""
    return find(r, _job, f"{_JOB} WHERE kind = ? AND key = ? ORDER BY id DESC LIMIT 1", (kind, key))
