"""
Background jobs: their state, lease and result.

=========  ==============================================  =====================================================
state      changes to                                      after a crash
=========  ==============================================  =====================================================
running    done or failed, by the process that holds       the row stays; when the lease has expired, the start
           the lease and renews it while the job runs      of the next job of this kind and key sets it to failed
done       nothing                                         the row with its result stays
failed     nothing                                         the row with its result stays
=========  ==============================================  =====================================================

At most one job of each kind and key runs at a time, in all processes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import define, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.columns import at, at_or_none, dump, load
from pkgrepo.storage.catalog.rows import find

RETENTION_MS = 7 * 86_400_000  # how long the row of an ended job is kept


@frozen
class Job:
    """One job: ``data`` are the parameters that it was started with, ``result`` is empty until it ends."""

    uid: str
    kind: str
    key: str
    state: str
    data: Mapping[str, Any]
    result: Mapping[str, Any]
    created_at: datetime
    finished_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether the job is done or failed."""
        return self.finished_at is not None


@define
class JobRunning(PkgrepoError):  # noqa: N818 - named for what is the case
    """A job of the same kind and key is running already."""

    job: Job

    def __str__(self) -> str:
        return f"{self.job.kind} job {self.job.uid} is running on {self.job.data.get('on', self.job.key)}"


_JOB = "SELECT uid, kind, key, state, data, result, created_at, finished_at FROM job"


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
        (dump({"errors": ["the process that ran this job has ended"]}), now_ms, kind, key, now_ms),
    )
    row = tx.one(f"{_JOB} WHERE kind = ? AND key = ? AND state = 'running'", (kind, key))
    if row is not None:
        raise JobRunning(_job(row))
    tx.execute(
        """
        INSERT INTO job (uid, kind, key, state, data, run_at, lease_by, lease_until, attempts, created_at)
        VALUES (?, ?, ?, 'running', ?, ?, ?, ?, 1, ?)
        """,
        (uid, kind, key, dump(data), now_ms, holder, until_ms, now_ms),
    )
    return get_job(tx, uid)


def renew_job(tx: Transaction, uid: str, holder: str, until_ms: int) -> bool:
    """Extend the lease of a job to ``until_ms``. False if the holder has lost the lease."""
    changed = tx.execute(
        "UPDATE job SET lease_until = ? WHERE uid = ? AND lease_by = ? AND state = 'running'", (until_ms, uid, holder)
    )
    return bool(changed)


def end_job(tx: Transaction, uid: str, holder: str, state: str, result: Mapping[str, Any], now_ms: int) -> Job:
    """Set the final state and result of a job. A job whose holder has lost the lease stays failed."""
    tx.execute(
        """
        UPDATE job SET state = ?, result = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE uid = ? AND lease_by = ? AND state = 'running'
        """,
        (state, dump(result), now_ms, uid, holder),
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


def last_job(r: Reader, kind: str, key: str) -> Job | None:
    """The latest job of this kind and key, or None."""
    return find(r, _job, f"{_JOB} WHERE kind = ? AND key = ? ORDER BY id DESC LIMIT 1", (kind, key))


def _job(row: Row) -> Job:
    return Job(
        uid=row[0],
        kind=row[1],
        key=row[2],
        state=row[3],
        data=load(row[4]),
        result=load(row[5]),
        created_at=at(row[6]),
        finished_at=at_or_none(row[7]),
    )
