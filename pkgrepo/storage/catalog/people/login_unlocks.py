"""Blocks of logins that were lifted by somebody, for the servers that keep them in memory."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number

from .identity import name_key

KEPT = 100  # rows; a server that sees none of them any more keeps its blocks until they end by themselves


@frozen
class LoginUnlock:
    """One of them; ``account`` is the key of a user name, and either it or ``address`` may be empty."""

    id: int
    account: str
    address: str


def add_unlock(tx: Transaction, *, username: str = "", address: str = "", now_ms: int) -> None:
    """Lift the blocks of an account, of an address, or of both."""
    added = tx.insert(
        "INSERT INTO login_unlock (account, address, created_at) VALUES (?, ?, ?) RETURNING id",
        (name_key(username), address, now_ms),
    )
    tx.execute("DELETE FROM login_unlock WHERE id <= ?", (added - KEPT,))


def newest_unlock(r: Reader) -> int:
    """The id of the newest one, 0 when there is none."""
    return number(r, "SELECT max(id) FROM login_unlock")


def unlocks_after(r: Reader, id: int) -> list[LoginUnlock]:
    """Those that came after this one, in their order."""
    rows = r.all("SELECT id, account, address FROM login_unlock WHERE id > ? ORDER BY id", (id,))
    return [LoginUnlock(int(row[0]), str(row[1]), str(row[2])) for row in rows]
