"""The records of jobs and of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pkgrepo.management.api.fields import CreatedAt, DryRun, Errors, JobId, ObjectId
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Repository
from pkgrepo.model.structs import meaning
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

    dry_run: Annotated[bool, meaning("Whether nothing is removed, and the answer is what would be.")] = False
    grace_seconds: Annotated[
        int, Meta(ge=0, le=YEAR_S), meaning("What was used within the last so many seconds is kept.")
    ] = GRACE_S
    delete_untagged: Annotated[bool, meaning("Whether manifests that nothing refers to are removed, too.")] = False
    upload_idle_seconds: Annotated[
        int,
        Meta(ge=0, le=DAY_S),
        meaning("The seconds after which an unfinished upload is removed that no request writes to."),
    ] = DAY_S


class Scanned(Record):
    """How many blobs and manifests were checked."""

    blobs: Annotated[int, meaning("How many blobs were checked.")]
    manifests: Annotated[int, meaning("How many manifests were checked.")]


class Removed(Record):
    """How many were removed, or would be with dry_run."""

    blobs: Annotated[int, meaning("How many blobs were removed.")]
    manifests: Annotated[int, meaning("How many manifests were removed.")]
    uploads: Annotated[int, meaning("How many unfinished uploads were removed.")]


class KeptRecord(Record):
    """Unreferenced objects that were kept, with the reason."""

    reason: Annotated[str, meaning("grace_time, push_under_way, untagged, upload or backup.")]
    count: Annotated[int, meaning("How many objects were kept.")]
    until: Annotated[
        datetime | None, meaning("When all of them can be removed; null if only an option of the request changes that.")
    ]
    message: Annotated[str, meaning("A sentence for people.")]


class Collection(Record):
    """The result of a garbage collection."""

    job_id: JobId
    id: Annotated[str, meaning("The same as job_id.")]
    state: Annotated[str, meaning("The state of the job.")]
    status: Annotated[str, meaning("The same as state.")]
    dry_run: DryRun
    scanned: Annotated[Scanned, meaning("What was checked.")]
    removed: Annotated[Removed, meaning("What was removed, or would be.")]
    freed_bytes: Annotated[int, meaning("The size in bytes of what was removed.")]
    kept: Annotated[list[KeptRecord], meaning("Unreferenced objects that were not removed.")]
    kept_by_grace: Annotated[int, meaning("How many were kept because of grace_seconds.")]
    duration_ms: Annotated[int, meaning("How long it took, in milliseconds.")]
    errors: Errors
    manifests_deleted: Annotated[int, meaning("The same as removed.manifests.")]
    blobs_deleted: Annotated[int, meaning("The same as removed.blobs.")]
    uploads_deleted: Annotated[int, meaning("The same as removed.uploads.")]
    bytes_freed: Annotated[int, meaning("The same as freed_bytes.")]


class Rebuilt(Record):
    """The result of a rebuild: how many packages were compared, and how many differed and were changed."""

    job_id: JobId
    packages: Annotated[int, meaning("How many packages were compared.")]
    changed: Annotated[int, meaning("How many packages differed and were changed.")]


class Verified(Record):
    """The result of a verification: how many blobs were read, their size, and how many are missing or damaged."""

    job_id: JobId
    blobs: Annotated[int, meaning("How many blobs were read.")]
    size_bytes: Annotated[int, meaning("The size of the blobs that were read, in bytes.")]
    missing: Annotated[int, meaning("How many blobs are missing.")]
    damaged: Annotated[int, meaning("How many blobs are damaged.")]
    errors: Annotated[list[str], meaning("Sentences about these, and about what could not be checked.")]


class JobPart(Record):
    """A part of a job's work: done of total steps (null: not known)."""

    label: Annotated[str, meaning("What the part does, for people.")]
    done: Annotated[int, meaning("How many steps are done.")]
    total: Annotated[int | None, meaning("How many steps there are; null if that is not known.")]
    begun_at: Annotated[datetime, meaning("When it began.")]
    ended_at: Annotated[datetime | None, meaning("When it ended; null while it runs.")]


class JobRecord(Record):
    """A background job."""

    measured = frozenset({"parts"})

    id: ObjectId
    job_id: Annotated[str, meaning("The same as id.")]
    kind: Annotated[str, meaning("What the job does, such as gc or verify.")]
    state: Annotated[str, meaning("running, done, failed or cancelled.")]
    status: Annotated[str, meaning("The same as state.")]
    on: Annotated[str, meaning("What it works on, for people.")]
    repository: Annotated[str | None, meaning("The repository for which it was started; null for none.")]
    started_by: Annotated[str, meaning("The user who started it, or system.")]
    parameters: Annotated[dict[str, Any], meaning("What it was started with.")]
    parts: Annotated[list[JobPart], meaning("The parts that it has begun, in this order.")]
    cancel_asked: Annotated[bool, meaning("Whether its end was asked for.")]
    created_at: CreatedAt
    finished_at: Annotated[datetime | None, meaning("When it ended; null while it runs.")]
    result: Annotated[
        dict[str, Any] | None, meaning("What the operation that started it returns; null until it is done.")
    ]
    errors: Errors


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
