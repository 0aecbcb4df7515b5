"""Garbage collection, and jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from pkgrepo.management.api.schema import Body, Record
from pkgrepo.repositories.upkeep.gc import GRACE_S

YEAR_S = 366 * 86_400


class CollectionWish(Body):
    """
    Options of a garbage collection.

    What was used within the last grace_seconds is kept. Blobs and manifests of an unfinished push are always kept.
    delete_untagged also removes manifests without a tag, unless a manifest that is kept contains them, or they refer to
    one as their subject.
    """

    dry_run: bool = False
    grace_seconds: Annotated[int, Meta(ge=0, le=YEAR_S)] = GRACE_S
    delete_untagged: bool = False


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

    reason is grace_time, push_under_way, untagged or upload. until is the time from which all of them can be removed,
    null if only an option of the request changes that. message is a sentence for people.
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
    repository the one for which somebody started it, both for people. parts are what it has begun, in this order, as it
    last noted it. cancel_asked: somebody has asked for its end. result is set once the job is done, in the form that
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
