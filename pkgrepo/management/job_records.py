"""Records of jobs and of what they came to."""

from __future__ import annotations

import msgspec

from pkgrepo.repositories.gc import KIND
from pkgrepo.storage.catalog.jobs import Job

from .schemas.gc import Collection, JobRecord, Removed, Scanned


def job_record(job: Job) -> JobRecord:
    """A job as its watchers see it."""
    ended_well = job.state == "done" and job.kind == KIND
    return JobRecord(
        id=job.uid,
        job_id=job.uid,
        kind=job.kind,
        state=job.state,
        status=job.state,
        created_at=job.created_at,
        finished_at=job.finished_at,
        result=msgspec.to_builtins(collection(job)) if ended_well else None,
        errors=list(job.result.get("errors", ())),
    )


def collection(job: Job) -> Collection:
    """What a garbage collection came to; the keys of its result are the fields of L{Collected}."""
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
        kept_by_grace=found["kept"],
        duration_ms=found["duration_ms"],
        errors=list(found["errors"]),
        manifests_deleted=found["manifests"],
        blobs_deleted=found["blobs"],
        uploads_deleted=found["uploads"],
        bytes_freed=found["freed"],
    )
