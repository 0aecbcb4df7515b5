"""Repositories that serve what they served at a time: a rule about everything that was published later."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import at
from pkgrepo.storage.catalog.server import settings

FREEZES: Final = "policy_freezes"  # the setting: JSON, the oldest first
MOST_FREEZES: Final = 100
MOST_EXEMPT: Final = 1000  # of one


class Freeze(msgspec.Struct, frozen=True):
    """
    What was published after a time (ms) is not served in the repositories whose paths match one of some patterns.

    ``exempt`` are patterns of names, or name@versions, that it is not about.
    """

    uid: str
    repositories: Sequence[str]
    at_ms: int
    exempt: Sequence[str]
    reason: str
    created_ms: int
    actor: str

    @property
    def at(self) -> datetime:
        """The time after which it begins."""
        return at(self.at_ms)

    @property
    def created_at(self) -> datetime:
        """When it was added."""
        return at(self.created_ms)


_decode = msgspec.json.Decoder(list[Freeze]).decode


def list_freezes(r: Reader) -> list[Freeze]:
    """All of them, the oldest first."""
    stored = settings.get(r, FREEZES)
    return [] if stored is None else _decode(stored)


def find_freeze(r: Reader, uid: str) -> Freeze | None:
    """The freeze with this id, or None."""
    return next((each for each in list_freezes(r) if each.uid == uid), None)


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
    found = list_freezes(tx)
    if len(found) >= MOST_FREEZES:
        raise Conflict(f"there are {MOST_FREEZES} freezes: thaw some")
    made = Freeze(str(uuid.uuid4()), list(repositories), at_ms, list(exempt), reason, now_ms, actor)
    _put(tx, [*found, made])
    return made


def exempt_from_freeze(tx: Transaction, uid: str, names: Sequence[str]) -> Freeze:
    """
    Except names (patterns, or name@versions) from a freeze.

    :raises NotFound: there is none; :raises Conflict: it has too many
    """
    found = existing(find_freeze(tx, uid), "freeze", uid)
    exempt = list(dict.fromkeys([*found.exempt, *names]))
    if len(exempt) > MOST_EXEMPT:
        raise Conflict(f"a freeze excepts at most {MOST_EXEMPT} names: thaw it")
    changed = msgspec.structs.replace(found, exempt=exempt)
    _put(tx, [changed if each.uid == uid else each for each in list_freezes(tx)])
    return changed


def remove_freeze(tx: Transaction, uid: str) -> None:
    """Remove a freeze. :raises NotFound: there is none"""
    existing(find_freeze(tx, uid), "freeze", uid)
    _put(tx, [each for each in list_freezes(tx) if each.uid != uid])


def _put(tx: Transaction, found: Sequence[Freeze]) -> None:
    settings.put(tx, FREEZES, msgspec.json.encode(found).decode())
    settings.bump_config_serial(tx)
