"""Which upstreams are known to be down, so that of all processes one tells others of it, and when it is over."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import LAST_CHARACTER

from . import settings

PREFIX: Final = "upstream_down:"


def is_down(r: Reader, repository_id: int, route: str) -> bool:
    """Whether it was noted that an upstream is down, and not yet that it answers again."""
    return bool(settings.get(r, _key(repository_id, route)))


Down = frozenset[tuple[int, str]]  # routes by the catalog key of their repository and their name


def down_routes(r: Reader) -> Down:
    """The routes of which some process has noted that they are down."""
    found = r.all(
        "SELECT key FROM setting WHERE key BETWEEN ? AND ? AND value <> ''", (PREFIX, PREFIX + LAST_CHARACTER)
    )
    parts = (key.removeprefix(PREFIX).partition(":") for (key,) in found)
    return frozenset((int(id_), route) for id_, _, route in parts)


def note_upstream(tx: Transaction, repository_id: int, route: str, reason: str | None, now_ms: int) -> None:
    """Note that an upstream is down, for a reason, or answers again (None), with an event if that is new."""
    if is_down(tx, repository_id, route) == (reason is not None):
        return
    settings.put(tx, _key(repository_id, route), reason or "")
    data: dict[str, Any] = {"name": route, "reason": reason or "it answers again"}
    kind = "upstream.up" if reason is None else "upstream.down"
    append_repository_event(tx, repository_id, kind, data, SYSTEM, now_ms)


def _key(repository_id: int, route: str) -> str:
    return f"{PREFIX}{repository_id}:{route}"
