"""
Links with which people choose a password, once: for a forgotten one, or as an invitation to a new account.

A user has one link at most. It ends when it is used, when it expires, when another one is made, and with every change
of the password. Only the hash of its secret is stored.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import User
from pkgrepo.storage.catalog.rows import number

from .users import find_user, set_password

USED: Final = "this link was used, has expired, or was replaced by another: ask for a new one"


def add_link(tx: Transaction, user_id: int, hash: bytes, *, now_ms: int, expires_ms: int) -> None:
    """Write command: add the link of a user, instead of an earlier one."""
    remove_link(tx, user_id)
    tx.execute(
        "INSERT INTO one_time_link (user_id, hash, created_at, expires_at) VALUES (?, ?, ?, ?)",
        (user_id, hash, now_ms, expires_ms),
    )


def remove_link(tx: Transaction, user_id: int) -> bool:
    """Write command: remove the link of a user; False if there is none."""
    return bool(tx.execute("DELETE FROM one_time_link WHERE user_id = ?", (user_id,)))


def find_link_user(r: Reader, hash: bytes, now_ms: int) -> User | None:
    """The active user of a link that can be used now, or None."""
    user_id = number(
        r, "SELECT COALESCE(MAX(user_id), 0) FROM one_time_link WHERE hash = ? AND expires_at > ?", (hash, now_ms)
    )
    user = find_user(r, user_id)
    return user if user is not None and user.active else None


def use_link(tx: Transaction, hash: bytes, password_hash: str, *, now_ms: int) -> User:
    """
    Write command: set the password of the user of a link, which ends the link and the logins of the user.

    :raises Forbidden: there is no such link any more
    """
    user = find_link_user(tx, hash, now_ms)
    if user is None:
        raise Forbidden(USED)
    set_password(tx, user.id, password_hash, now_ms=now_ms)
    return user
