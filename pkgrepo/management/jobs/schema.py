"""The records of jobs and of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.upkeep.gc import GRACE_S, KIND
from pkgrepo.storage.catalog.server.jobs import Job

DAY_S = 86_400
YEAR_S = 366 * DAY_S


class CollectionWish(Body):
    """
    Options of a garbage collection.

    What was used within the last grace_seconds is kept. Blobs and manifests of an unfinished push are always kept.
    delete_untagged also removes manifests without a tag, unless a manifest that is kept contains them, or they refer to
    one as their subject. upload_idle_seconds is the time after which an unfinished upload is removed that no request
    writes to, a day at the most; the bytes of one that was used within the last hour are removed by a later collection.
    """

    dry_run: bool = False
    grace_seconds: Annotated[int, Meta(ge=0, le=YEAR_S)] = GRACE_S
    delete_untagged: bool = False
    upload_idle_seconds: Annotated[int, Meta(ge=0, le=DAY_S)] = DAY_S


class Scanned(Record):
    """How many blobs and manifests were checked."""

    blobs: int
    manifests: int


class Removed(Record):
    """How many were removed, or would be with dry_run."""

    blobs: int
    manifests: int
    uploads: int


class KeptRecord(Record):
    """
    Unreferenced objects that were kept, with the reason.

    reason is grace_time, push_under_way, untagged, upload or backup. until is the time from which all of them can be
    removed, null if only an option of the request changes that. message is a sentence for people.
    """

    reason: str
    count: int
    until: datetime | None
    message: str


class Collection(Record):
    """
    The result of a garbage collection.

    kept lists unreferenced objects that were not removed; kept_by_grace counts those kept because of grace_seconds.
    manifests_deleted, blobs_deleted, uploads_deleted, bytes_freed, id and status repeat other fields for clients of
    other servers.
    """

    job_id: str
    id: str
    state: str
    status: str
    dry_run: bool
    scanned: Scanned
    removed: Removed
    freed_bytes: int
    kept: list[KeptRecord]
    kept_by_grace: int
    duration_ms: int
    errors: list[str]
    manifests_deleted: int
    blobs_deleted: int
    uploads_deleted: int
    bytes_freed: int


class Rebuilt(Record):
    """The result of a rebuild: how many packages were compared, and how many differed and were changed."""

    job_id: str
    packages: int
    changed: int


class Verified(Record):
    """
    The result of a verification: how many blobs were read, their size, and how many are missing or damaged.

    errors are sentences about these, and about what could not be checked.
    """

    job_id: str
    blobs: int
    size_bytes: int
    missing: int
    damaged: int
    errors: list[str]


class JobPart(Record):
    """A part of a job's work: done of total steps (null: not known). ended_at is null while it runs."""

    label: str
    done: int
    total: int | None
    begun_at: datetime
    ended_at: datetime | None


class JobRecord(Record):
    """
    A background job.

    state is running, done, failed or cancelled; status repeats it, and job_id repeats id. on is what it works on,
    repository the one for which it was started, both for people. parts are what it has begun, in this order, as it
    last noted it. cancel_asked: its end was asked for. result is set once the job is done, in the form that
    the operation which started the job returns.
    """

    measured = frozenset({"parts"})

    id: str
    job_id: str
    kind: str
    state: str
    status: str
    on: str
    repository: str | None
    started_by: str
    parameters: dict[str, Any]
    parts: list[JobPart]
    cancel_asked: bool
    created_at: datetime
    finished_at: datetime | None
    result: dict[str, Any] | None
    errors: list[str]


_PLACES = frozenset({"on", "repository", "by"})  # of the data of a job; the others are its parameters


def job_record(job: Job, repository: Repository | None) -> JobRecord:
    """The record of a job; ``repository`` is the one for which it was started."""
    result: dict[str, Any] | None = None
    if job.state == "done":  # the results of other kinds have the form of the API already
        result = msgspec.to_builtins(collection_record(job)) if job.kind == KIND else dict(job.result)
    return JobRecord.from_attributes(
        job,
        id=job.uid,
        job_id=job.uid,
        status=job.state,
        on=str(job.data.get("on", "")),
        repository=None if repository is None else repository.path,
        started_by=str(job.data.get("by", "")),
        parameters={name: value for name, value in job.data.items() if name not in _PLACES},
        parts=[_part(each) for each in job.progress],
        result=result,
        errors=list(job.result.get("errors", ())),
    )


def _part(part: Mapping[str, Any]) -> JobPart:
    ended_ms = part["ended_ms"]
    return JobPart(
        label=part["label"],
        done=part["done"],
        total=part["total"] or None,
        begun_at=from_ms(part["begun_ms"]),
        ended_at=None if ended_ms is None else from_ms(ended_ms),
    )


def collection_record(job: Job) -> Collection:
    """The record of a garbage collection; the keys of its result are the fields of L{GcReport}."""
    found = job.result
    return Collection(
        job_id=job.uid,
        id=job.uid,
        state=job.state,
        status=job.state,
        dry_run=job.data["dry_run"],
        scanned=Scanned(blobs=found["blobs_seen"], manifests=found["manifests_seen"]),
        removed=Removed(blobs=found["blobs"], manifests=found["manifests"], uploads=found["uploads"]),
        freed_bytes=found["freed"],
        kept=list(_kept(job)),
        kept_by_grace=found.get("young", 0),
        duration_ms=found["duration_ms"],
        errors=list(found["errors"]),
        manifests_deleted=found["manifests"],
        blobs_deleted=found["blobs"],
        uploads_deleted=found["uploads"],
        bytes_freed=found["freed"],
    )


def _kept(job: Job) -> Iterator[KeptRecord]:
    """What was kept, by reason; reasons without objects are left out."""
    found, grace_s = job.result, job.data["grace_s"]
    reasons = (
        (
            "grace_time",
            "young",
            "young_until_ms",
            f"blobs and manifests were used within the last {grace_s} seconds; grace_seconds sets another time, and 0 "
            "removes them at once",
        ),
        (
            "push_under_way",
            "promised",
            "promised_until_ms",
            "blobs and manifests were uploaded by clients, or confirmed to them, that have not pushed yet what refers "
            "to them; no field changes this, since their pushes would fail",
        ),
        ("untagged", "untagged", "", "manifests without a tag; delete_untagged removes them"),
        (
            "upload",
            "open_uploads",
            "open_until_ms",
            "uploads have begun and not ended; their clients may go on with them for a day",
        ),
        ("backup", "held", "", "blobs are unused, and stay until the backup that runs has ended"),
    )
    for reason, count, until, sentence in reasons:
        if found.get(count):
            yield KeptRecord(
                reason=reason,
                count=found[count],
                until=from_ms(found[until]) if until else None,
                message=f"{found[count]} {sentence}",
            )
