"""
Jobs: what runs in the background, and how it ended.

=========  ==============================================  =====================================================
state      who moves it on                                 what survives a crash
=========  ==============================================  =====================================================
running    its runner ends it, and renews its lease        the row; once the lease has run out, the next one that
           until then                                      wants to run finds it failed
done       nobody                                          the row with its result
failed     nobody                                          the same
=========  ==============================================  =====================================================

Of the jobs with one kind and key, one runs at a time, whatever process runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import define, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.columns import at, dump, load
from pkgrepo.storage.catalog.rows import find

KEPT_MS = 7 * 86_400_000  # an ended job can be asked for so long


@frozen
class Job:
    """One job; ``data`` is what it was begun with, ``result`` what it came to."""

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
        """Whether nothing will change about it any more."""
        return self.finished_at is not None


@define
class JobRunning(PkgrepoError):  # noqa: N818 - named for what is the case
    """A job of the same kind and key runs already."""

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
    Note that a job runs, its runner's until ``until_ms``; one that a dead runner left behind fails.

    :raises JobRunning: one of the same kind and key does
    """
    tx.execute("DELETE FROM job WHERE kind = ? AND finished_at < ?", (kind, now_ms - KEPT_MS))
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
    """Keep a job for longer; whether it was still the holder's."""
    changed = tx.execute(
        "UPDATE job SET lease_until = ? WHERE uid = ? AND lease_by = ? AND state = 'running'", (until_ms, uid, holder)
    )
    return bool(changed)


def end_job(tx: Transaction, uid: str, holder: str, state: str, result: Mapping[str, Any], now_ms: int) -> Job:
    """Note how a job ended; one that was taken for dead meanwhile stays so."""
    tx.execute(
        """
        UPDATE job SET state = ?, result = ?, finished_at = ?, lease_by = NULL, lease_until = NULL
        WHERE uid = ? AND lease_by = ? AND state = 'running'
        """,
        (state, dump(result), now_ms, uid, holder),
    )
    return get_job(tx, uid)


def find_job(r: Reader, uid: str) -> Job | None:
    """The job of this id, or None."""
    return find(r, _job, f"{_JOB} WHERE uid = ?", (uid,))


def get_job(r: Reader, uid: str) -> Job:
    """The job of this id, which is there."""
    found = find_job(r, uid)
    assert found is not None
    return found


def last_job(r: Reader, kind: str, key: str) -> Job | None:
    """The job of this kind and key that began last, or None."""
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
        finished_at=None if row[7] is None else at(row[7]),
    )
