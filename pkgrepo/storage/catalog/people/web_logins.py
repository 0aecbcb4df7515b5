"""
Web logins: a user approves the login of a client in a browser, and the client then fetches it once.

A login is identified by the digest of a secret that only the client has. Its approval is a row of the table
``setting``, and stays there until it expires, also after it was fetched.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import dump, load
from pkgrepo.storage.catalog.server import settings

PREFIX = "login:"


@frozen
class Approval:
    """The user who approved a login, and when the approval expires. ``fetched``: the client has used the login."""

    user_id: int
    until_ms: int  # milliseconds since the epoch
    fetched: bool


def find_approval(r: Reader, digest: str) -> Approval | None:
    """The approval of a login, or None. It may have expired: the caller checks that."""
    text = settings.get(r, PREFIX + digest)
    return None if text is None else Approval(**load(text))


def approve_login(tx: Transaction, digest: str, *, user_id: int, until_ms: int, now_ms: int) -> bool:
    """Add the approval of a login; False if it is approved already. Removes all expired approvals."""
    for key, text in tx.all("SELECT key, value FROM setting WHERE key >= ? AND key < ?", (PREFIX, PREFIX[:-1] + ";")):
        if load(text)["until_ms"] <= now_ms:
            tx.execute("DELETE FROM setting WHERE key = ?", (key,))
    if find_approval(tx, digest) is not None:
        return False
    settings.put(tx, PREFIX + digest, dump({"user_id": user_id, "until_ms": until_ms, "fetched": False}))
    return True


def fetch_login(tx: Transaction, digest: str, *, now_ms: int) -> int | None:
    """Use a login up: the catalog key of its user, or None if it is not approved, fetched already, or expired."""
    found = find_approval(tx, digest)
    if found is None or found.fetched or found.until_ms <= now_ms:
        return None
    value = {"user_id": found.user_id, "until_ms": found.until_ms, "fetched": True}
    settings.put(tx, PREFIX + digest, dump(value))
    return found.user_id
