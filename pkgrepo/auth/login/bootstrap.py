"""The first admin."""

from __future__ import annotations

from pkgrepo.interfaces import Transaction
from pkgrepo.model import User
from pkgrepo.storage.catalog.people.identity import add_user, has_users


def ensure_admin(tx: Transaction, username: str, password_hash: str, *, now_ms: int) -> User | None:
    """
    The admin that was just added, or None when there are users already.

    It is created on a server without any user and never touched again, whatever the configuration says later: a
    password that was changed by its owner must not come back with the next restart.
    """
    if has_users(tx):
        return None
    return add_user(tx, username=username, password_hash=password_hash, admin=True, now_ms=now_ms)
