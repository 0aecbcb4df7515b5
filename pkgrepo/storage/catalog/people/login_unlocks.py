"""
Unlocks: requests to remove the login blocks of an account or address.

Each process keeps login blocks in memory, and reads the unlocks that were added since its last look.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number

from .users import name_key

MAX_ROWS = 100  # a process that misses older rows keeps its blocks until they expire


@frozen
class LoginUnlock:
    """One unlock. ``account`` is the key of a user name; one of ``account`` and ``address`` may be empty."""

    id: int
    account: str
    address: str


def add_unlock(tx: Transaction, *, username: str = "", address: str = "", now_ms: int) -> None:
    """Add an unlock of an account, of an address, or of both, and remove old unlocks."""
    added = tx.insert(
        "INSERT INTO login_unlock (account, address, created_at) VALUES (?, ?, ?) RETURNING id",
        (name_key(username), address, now_ms),
    )
    tx.execute("DELETE FROM login_unlock WHERE id <= ?", (added - MAX_ROWS,))


def newest_unlock_id(r: Reader) -> int:
    """The id of the newest unlock, or 0."""
    return number(r, "SELECT max(id) FROM login_unlock")


def unlocks_after(r: Reader, id: int) -> list[LoginUnlock]:
    """The unlocks whose id is greater than ``id``, oldest first."""
    rows = r.all("SELECT id, account, address FROM login_unlock WHERE id > ? ORDER BY id", (id,))
    return [LoginUnlock(int(row[0]), str(row[1]), str(row[2])) for row in rows]
