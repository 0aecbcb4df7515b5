"""
Logins that a person approved in a browser and that a client has not fetched yet.

A login is known by the digest of a secret that only the client has. It can be fetched once; what remains of it then
is that it was, until it would have ended.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.columns import dump, load
from pkgrepo.storage.catalog.server import settings

PREFIX = "login:"


@frozen
class Approval:
    """Who approved, and until when it counts, in milliseconds since the epoch; ``fetched`` when it was used up."""

    user_id: int
    until_ms: int
    fetched: bool


def find_approval(r: Reader, digest: str) -> Approval | None:
    """The approval of a login, or None; whether it still counts is the caller's to look at."""
    text = settings.get(r, PREFIX + digest)
    return None if text is None else Approval(**load(text))


def approve_login(tx: Transaction, digest: str, *, user_id: int, until_ms: int, now_ms: int) -> bool:
    """Note who approved a login; False when somebody did already. Ended ones are forgotten."""
    for key, text in tx.all("SELECT key, value FROM setting WHERE key >= ? AND key < ?", (PREFIX, PREFIX[:-1] + ";")):
        if load(text)["until_ms"] <= now_ms:
            tx.execute("DELETE FROM setting WHERE key = ?", (key,))
    if find_approval(tx, digest) is not None:
        return False
    settings.put(tx, PREFIX + digest, dump({"user_id": user_id, "until_ms": until_ms, "fetched": False}))
    return True


def fetch_login(tx: Transaction, digest: str, *, now_ms: int) -> int | None:
    """The catalog key of the user who approved, once; None when nobody did, or it was fetched, or it has ended."""
    found = find_approval(tx, digest)
    if found is None or found.fetched or found.until_ms <= now_ms:
        return None
    value = {"user_id": found.user_id, "until_ms": found.until_ms, "fetched": True}
    settings.put(tx, PREFIX + digest, dump(value))
    return found.user_id
