"""The actor of a change, and the rows of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from .users import Identity


@frozen
class Actor:
    """The user who made a change, for events and for rows of the audit log."""

    user_id: int | None = None
    name: str = ""
    token_id: int | None = None
    address: str = ""
    request_id: str = ""

    @classmethod
    def of(cls, identity: Identity, *, address: str = "", request_id: str = "") -> Actor:
        """The actor of a request with this identity."""
        return cls(
            user_id=identity.user_id,
            name=identity.username or "anonymous",
            token_id=identity.token_id,
            address=address,
            request_id=request_id,
        )


SYSTEM = Actor(name="system")


@frozen
class AuditEntry:
    """One row of the audit log. ``outcome`` is ``ok``, ``refused`` or ``failed``; ``detail`` never holds secrets."""

    seq: int
    at: datetime
    request_id: str
    user_id: int | None
    actor: str
    token_id: int | None
    address: str
    action: str
    object: str
    outcome: str
    detail: Mapping[str, Any]
