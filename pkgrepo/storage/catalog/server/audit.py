"""
The audit log: changes, refused requests and logins, each with its actor.

Entries are added and never changed; old entries are removed. Texts of an entry may come from a request, so they are
truncated to lengths that valid requests do not reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, AuditEntry
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.events import SERVER, append_repository_event
from pkgrepo.storage.catalog.rows import LAST_CHARACTER, dump, every, non_null, optional_conditions, put, rows

from .repositories import find_by_path, repository_key

OK = "ok"

LONGEST_TEXT = 500  # characters of an object, or of one text in the detail
MOST_ITEMS = 100  # items of a list or an object in the detail
LONGEST_DETAIL = 16 * 1024  # characters of the detail as JSON
MOST_LEVELS = 8  # levels of the detail
PRUNE_BATCH = 500  # rows in one transaction; takes some milliseconds

# Actions of which other programs are told by an event, too, and its kind.
ANNOUNCED: Final[Mapping[str, str]] = {
    "repository.create": "repository.created",
    "repository.update": "repository.updated",
    "repository.configure": "repository.updated",
    "project.member": "member.changed",
    "token.create": "token.created",
    "token.revoke": "token.revoked",
}

_ENTRY, _entry = rows(AuditEntry, "audit")
_FILTERS = (
    "actor = ?",
    "object = ?",
    "action >= ?",
    "action <= ?",
    "outcome = ?",
    "at >= ?",
    "at < ?",
)
AUDIT_ORDERS: Final[Mapping[str, Order[AuditEntry]]] = both_ways({"time": [("seq", int, lambda each: each.seq)]})


@frozen
class Entry:
    """
    An entry to be added: the actor, the action and its outcome.

    ``object`` is the path or name of the thing that was acted on. ``detail`` is JSON; the caller ensures that it
    contains no secrets.
    """

    actor: Actor
    action: str
    object: str = ""
    outcome: str = OK
    detail: Mapping[str, Any] = Factory(dict)


def append_entry(tx: Transaction, entry: Entry, now_ms: int) -> None:
    """Add an entry; its texts are truncated. If its action is one of ``ANNOUNCED``, add the event as well."""
    actor = entry.actor
    kind = ANNOUNCED.get(entry.action)
    if kind is not None and entry.outcome == OK:
        data = {"name": truncate(entry.object)}
        append_repository_event(tx, _repository_id(tx, entry), kind, data, actor, now_ms)
    put(
        tx,
        "audit",
        at=now_ms,
        request_id=truncate(actor.request_id),
        user_id=actor.user_id,
        actor=truncate(actor.name),
        token_id=actor.token_id,
        address=truncate(actor.address),
        action=truncate(entry.action),
        object=truncate(entry.object),
        outcome=entry.outcome,
        detail=truncate_detail(entry.detail),
    )


def _repository_id(r: Reader, entry: Entry) -> int:
    """The catalog key of the repository that an entry is about; ``SERVER`` if it is about none."""
    storage, slash, name = entry.object.partition("/")
    if not slash or not entry.action.startswith("repository."):
        return SERVER
    found = find_by_path(r, storage.casefold(), repository_key(name))
    return SERVER if found is None else found.id


def truncate(text: str) -> str:
    """The text, shortened to ``LONGEST_TEXT`` characters; a shortened text ends with an ellipsis."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def truncate_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail with texts, lists and depth shortened to the limits; only a note if it is still too long."""
    found: dict[str, Any] = _truncate_value(detail, MOST_LEVELS)
    return found if len(dump(found)) <= LONGEST_DETAIL else {"left_out": "the detail is too long"}


def _truncate_value(value: Any, levels: int) -> Any:
    match value:
        case str():
            return truncate(value)
        case Mapping() | list() | tuple() if not levels:
            return "…"
        case Mapping():
            return {truncate(key): _truncate_value(each, levels - 1) for key, each in list(value.items())[:MOST_ITEMS]}
        case list() | tuple():
            return [_truncate_value(each, levels - 1) for each in value[:MOST_ITEMS]]
        case _:
            return value


def prune_audit(tx: Transaction, before_ms: int, limit: int = PRUNE_BATCH) -> int:
    """
    Remove entries from before a time, at most ``limit``. Returns how many were removed.

    Only the ``limit`` oldest rows are read, so the cost does not depend on the length of the log.
    """
    return tx.execute(
        "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?) AND at < ?",
        (limit, before_ms),
    )


def list_audit(
    r: Reader,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    order: str = "-time",
    actor: str = "",
    object: str = "",
    action: str = "",
    outcome: str = "",
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> list[AuditEntry]:
    """
    A page of entries in one of the ``AUDIT_ORDERS``, beginning after a position.

    An empty filter matches every entry. An ``action`` that ends with ``.`` matches all actions with this prefix.
    ``from_ms`` is inclusive, ``to_ms`` exclusive.
    """
    last = f"{action}{LAST_CHARACTER}" if action.endswith(".") else action
    values = (
        actor or None,
        truncate(object) or None,
        action or None,
        last or None,
        outcome or None,
        from_ms,
        to_ms,
    )
    sorting = AUDIT_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    sql = f"{_ENTRY} WHERE {optional_conditions(_FILTERS, values)} {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _entry, sql, (*non_null(values), *after, limit))
