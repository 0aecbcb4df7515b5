"""
The audit log: who changed what, who was refused, who logged in. Rows are added, never changed, and removed when old.

Texts in a row may come from a request, so each is cut to a length that no text in earnest has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Actor, AuditEntry
from pkgrepo.storage.catalog.clauses import given, narrowed
from pkgrepo.storage.catalog.columns import LAST, at, dump, load
from pkgrepo.storage.catalog.rows import every

OK = "ok"

LONGEST_TEXT = 500  # characters of an object, or of one text in the detail
LONGEST_LIST = 100  # items of a list or an object in the detail
LONGEST_DETAIL = 16 * 1024  # characters of the detail as JSON
DEEPEST = 8  # levels of the detail
PRUNED = 500  # rows in one transaction; some milliseconds of the writer

_ENTRY = "SELECT seq, at, request_id, user_id, actor, token_id, address, action, object, outcome, detail FROM audit"
_FILTERS = (
    "seq < ?",
    "actor = ?",
    "object = ?",
    "action >= ?",
    "action <= ?",
    "outcome = ?",
    "at >= ?",
    "at < ?",
)


@frozen
class Entry:
    """
    A line to be added: who did what, and how it ended.

    ``object`` is the path or name of what was acted on. ``detail`` is JSON without secrets: the caller sees to that.
    """

    actor: Actor
    action: str
    object: str = ""
    outcome: str = OK
    detail: Mapping[str, Any] = Factory(dict)


def append_entry(tx: Transaction, entry: Entry, now_ms: int) -> None:
    """Add a line, in which what is longer than a row may hold is cut."""
    actor = entry.actor
    tx.execute(
        """
        INSERT INTO audit (at, request_id, user_id, actor, token_id, address, action, object, outcome, detail)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            now_ms,
            cut(actor.request_id),
            actor.user_id,
            cut(actor.name),
            actor.token_id,
            cut(actor.address),
            cut(entry.action),
            cut(entry.object),
            entry.outcome,
            dump(cut_detail(entry.detail)),
        ),
    )


def cut(text: str) -> str:
    """A text as a row may hold it; an ellipsis stands for what was cut off."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def cut_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """A detail as a row may hold it."""
    found: dict[str, Any] = _cut_value(detail, DEEPEST)
    return found if len(dump(found)) <= LONGEST_DETAIL else {"left_out": "the detail is too long"}


def _cut_value(value: Any, levels: int) -> Any:
    match value:
        case str():
            return cut(value)
        case Mapping() | list() | tuple() if not levels:
            return "…"
        case Mapping():
            return {cut(key): _cut_value(each, levels - 1) for key, each in list(value.items())[:LONGEST_LIST]}
        case list() | tuple():
            return [_cut_value(each, levels - 1) for each in value[:LONGEST_LIST]]
        case _:
            return value


def prune_audit(tx: Transaction, before_ms: int) -> int:
    """
    Remove up to ``PRUNED`` of the oldest rows that are from before a time; how many those were.

    Only the front of the log is looked at, so that it costs the same however long the log is.
    """
    return tx.execute(
        "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?) AND at < ?", (PRUNED, before_ms)
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
    last = f"{action}{LAST}" if action.endswith(".") else action
    values = (
        before,
        actor or None,
        cut(object) or None,
        action or None,
        last or None,
        outcome or None,
        from_ms,
        to_ms,
    )
    return every(
        r, _entry, f"{_ENTRY} WHERE {narrowed(_FILTERS, values)} ORDER BY seq DESC LIMIT ?", (*given(values), limit)
    )


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
