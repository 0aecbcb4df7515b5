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
    How to collect.

    Nothing goes that somebody touched within the last grace_seconds, nor, whatever they are, what a push under way has
    sent or was told is there. With delete_untagged manifests go too that no tag stands for, unless they are part of one
    that stays, or belong to one.
    """

    dry_run: bool = False
    grace_seconds: Annotated[int, Meta(ge=0, le=YEAR_S)] = GRACE_S
    delete_untagged: bool = False


class Scanned(Record):
    """How much was looked at."""

    blobs: int
    manifests: int


class Removed(Record):
    """How much went, or would go in a dry run."""

    blobs: int
    manifests: int
    uploads: int


class KeptRecord(Record):
    """
    What stayed although nothing needs it.

    reason is grace_time, push_under_way, untagged or upload; until is when all of it may go, and null where only a
    wish changes that; message says so in a sentence, and names the field that changes it.
    """

    reason: str
    count: int
    until: datetime | None
    message: str


class Collection(Record):
    """
    A garbage collection as it ended.

    kept tells what stayed although nothing needs it, why and until when; kept_by_grace counts what of it was used too
    recently. manifests_deleted, blobs_deleted, uploads_deleted, bytes_freed, id and status repeat other fields, for
    callers of other servers.
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


class JobRecord(Record):
    """
    Work in the background.

    state is running, done or failed; status repeats it, and job_id the id. result is there once it has ended, in the
    form of the operation that began it.
    """

    id: str
    job_id: str
    kind: str
    state: str
    status: str
    created_at: datetime
    finished_at: datetime | None
    result: dict[str, Any] | None
    errors: list[str]
