"""Records of jobs and of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pkgrepo.model import Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.upkeep.gc import KIND
from pkgrepo.storage.catalog.server.jobs import Job

from .schema import Collection, JobPart, JobRecord, KeptRecord, Removed, Scanned

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
    )
    for reason, count, until, sentence in reasons:
        if found.get(count):
            yield KeptRecord(
                reason=reason,
                count=found[count],
                until=from_ms(found[until]) if until else None,
                message=f"{found[count]} {sentence}",
            )
