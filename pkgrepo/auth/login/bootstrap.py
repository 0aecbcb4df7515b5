"""The first admin."""

from __future__ import annotations

from pkgrepo.interfaces import Transaction
from pkgrepo.model import User
from pkgrepo.storage.catalog.people.users import add_user, has_users


def ensure_admin(tx: Transaction, username: str, password_hash: str, *, now_ms: int) -> User | None:
    """
    Add the first admin. Returns it, or None if there are users already.

    It is never changed afterwards, whatever the configuration says: a restart must not bring back an old password.
    """
    if has_users(tx):
        return None
    return add_user(tx, username=username, password_hash=password_hash, admin=True, now_ms=now_ms)
