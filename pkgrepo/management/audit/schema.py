"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pkgrepo.management.api.schema import Record
from pkgrepo.model import AuditEntry


class AuditRecord(Record):
    """A row of the audit log: actor, client address, action, object and outcome (ok, refused or failed)."""

    id: int
    time: datetime
    request_id: str
    actor: str
    token_id: int | None
    address: str
    action: str
    object: str
    outcome: str
    detail: dict[str, Any]

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        """The record of a row of the audit log."""
        return cls.from_attributes(entry, id=entry.seq, time=entry.at, detail=dict(entry.detail))
