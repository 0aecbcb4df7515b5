"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pkgrepo.management.api.etags import Record


class AuditRecord(Record):
    """Who did what to which object, from where, and how it ended: ok, refused or failed."""

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
