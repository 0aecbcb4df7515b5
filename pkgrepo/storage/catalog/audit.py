"""The audit log: who changed what, who was refused, who logged in. Rows are added and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Actor, AuditEntry

from .columns import at, dump, load

_ENTRY = "SELECT seq, at, request_id, user_id, actor, token_id, address, action, object, outcome, detail FROM audit"


def append_audit(
    tx: Transaction,
    *,
    actor: Actor,
    action: str,
    now_ms: int,
    object: str = "",
    outcome: str = "ok",
    detail: Mapping[str, Any] | None = None,
) -> int:
    """
    Add a line; its sequence number.

    ``object`` is the path or name of what was acted on. ``detail`` is JSON without secrets: the caller sees to that.
    """
    return tx.insert(
        """
        INSERT INTO audit (at, request_id, user_id, actor, token_id, address, action, object, outcome, detail)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            now_ms,
            actor.request_id,
            actor.user_id,
            actor.name,
            actor.token_id,
            actor.address,
            action,
            object,
            outcome,
            dump(detail or {}),
        ),
    )


def list_audit(
    r: Reader,
    *,
    before: int | None = None,
    limit: int = 50,
    actor: str = "",
    object: str = "",
    action: str = "",
    outcome: str = "",
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> list[AuditEntry]:
    """
    Lines from the newest to the oldest, from before the sequence number ``before``.

    Empty filters let everything pass. ``action`` ending in ``.`` stands for every action that begins so; ``from_ms``
    is included, ``to_ms`` is not.
    """
    where: list[str] = ["1 = 1"]
    parameters: list[str | int] = []
    prefix = action if action.endswith(".") else ""
    for condition, value in (
        ("seq < ?", before),
        ("actor = ?", actor or None),
        ("object = ?", object or None),
        ("action = ?", None if prefix else action or None),
        ("substr(action, 1, length(?)) = ?", prefix or None),
        ("outcome = ?", outcome or None),
        ("at >= ?", from_ms),
        ("at < ?", to_ms),
    ):
        if value is not None:
            where.append(condition)
            parameters += [value] * condition.count("?")
    rows = r.all(f"{_ENTRY} WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?", (*parameters, limit))
    return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        seq=row[0],
        at=at(row[1]),
        request_id=row[2],
        user_id=row[3],
        actor=row[4],
        token_id=row[5],
        address=row[6],
        action=row[7],
        object=row[8],
        outcome=row[9],
        detail=load(row[10]),
    )
