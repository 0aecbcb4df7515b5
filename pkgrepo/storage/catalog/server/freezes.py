"""Repositories that serve what they served at a time: a rule about everything that was published later."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import dump, every, find, insert, load, number, rows
from pkgrepo.storage.catalog.server import settings

MOST_FREEZES: Final = 100
MOST_EXEMPT: Final = 1000  # of one


@frozen
class Freeze:
    """
    What was published after ``at`` is not served in the repositories whose paths match one of some patterns.

    ``exempt`` are patterns of names, or name@versions, that it is not about.
    """

    id: int
    uid: str
    repositories: Sequence[str]
    at: datetime
    exempt: Sequence[str]
    reason: str
    created_at: datetime
    actor: str


_FREEZE, _freeze = rows(Freeze, "policy_freeze", repositories=load, exempt=load)


def list_freezes(r: Reader) -> list[Freeze]:
    """All of them, the oldest first."""
    return every(r, _freeze, f"{_FREEZE} ORDER BY id")


def find_freeze(r: Reader, uid: str) -> Freeze | None:
    """The freeze with this id, or None."""
    return find(r, _freeze, f"{_FREEZE} WHERE uid = ?", (uid,))


def add_freeze(
    tx: Transaction,
    *,
    repositories: Sequence[str],
    at_ms: int,
    exempt: Sequence[str],
    reason: str,
    actor: str,
    now_ms: int,
) -> Freeze:
    """
    Add a freeze; it holds from the commit on.

    :raises Conflict: there are too many
    """
    uid = str(uuid.uuid4())
    if number(tx, "SELECT COUNT(*) FROM policy_freeze") >= MOST_FREEZES:
        raise Conflict(f"there are {MOST_FREEZES} freezes: thaw some")
    insert(
        tx,
        "policy_freeze",
        uid=uid,
        repositories=dump(list(repositories)),
        at=at_ms,
        exempt=dump(list(exempt)),
        reason=reason,
        created_at=now_ms,
        actor=actor,
    )
    settings.bump_config_serial(tx)
    return existing(find_freeze(tx, uid), "freeze", uid)


def exempt_from_freeze(tx: Transaction, uid: str, names: Sequence[str]) -> Freeze:
    """
    Except names (patterns, or name@versions) from a freeze.

    :raises NotFound: there is none; :raises Conflict: it has too many
    """
    found = existing(find_freeze(tx, uid), "freeze", uid)
    exempt = list(dict.fromkeys([*found.exempt, *names]))
    if len(exempt) > MOST_EXEMPT:
        raise Conflict(f"a freeze excepts at most {MOST_EXEMPT} names: thaw it")
    tx.execute("UPDATE policy_freeze SET exempt = ? WHERE uid = ?", (dump(exempt), uid))
    settings.bump_config_serial(tx)
    return existing(find_freeze(tx, uid), "freeze", uid)


def remove_freeze(tx: Transaction, uid: str) -> None:
    """Remove a freeze. :raises NotFound: there is none"""
    existing(find_freeze(tx, uid), "freeze", uid)
    tx.execute("DELETE FROM policy_freeze WHERE uid = ?", (uid,))
    settings.bump_config_serial(tx)
