"""Passkeys of people: the public keys with which their devices log them in."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.errors import Conflict, NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.people.users import bump_identity_serial, record_login
from pkgrepo.storage.catalog.rows import every, find, insert, number, only_row, rows

MOST: Final = 20  # of one person


@frozen
class Passkey:
    """
    One passkey: the id that its authenticator gave it, and its public key (DER of a SubjectPublicKeyInfo).

    ``sign_count`` is what the authenticator has counted at the last use; 0 if it does not count.
    """

    id: int
    account_id: int
    credential_id: bytes
    public_key: bytes
    sign_count: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


_SELECT, _passkey = rows(Passkey, "passkey")


def list_passkeys(r: Reader, account_id: int) -> list[Passkey]:
    """The passkeys of a person, in the order in which they were made."""
    return every(r, _passkey, f"{_SELECT} WHERE account_id = ? ORDER BY id", (account_id,))


def find_passkey(r: Reader, credential_id: bytes) -> Passkey | None:
    """The passkey with this id of its authenticator, or None."""
    return find(r, _passkey, f"{_SELECT} WHERE credential_id = ?", (credential_id,))


def add_passkey(
    tx: Transaction,
    account_id: int,
    *,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    name: str,
    now_ms: int,
) -> Passkey:
    """Write command: add a passkey. :raises Conflict: it is there already, or the person has ``MOST`` of them"""
    if find_passkey(tx, credential_id) is not None:
        raise Conflict("this passkey is set up already")
    if number(tx, "SELECT COUNT(*) FROM passkey WHERE account_id = ?", (account_id,)) >= MOST:
        raise Conflict(f"an account has at most {MOST} passkeys: remove one first")
    added = insert(
        tx,
        "passkey",
        account_id=account_id,
        credential_id=credential_id,
        public_key=public_key,
        sign_count=sign_count,
        name=name,
        created_at=now_ms,
    )
    return _passkey(only_row(tx, f"{_SELECT} WHERE id = ?", (added,)))


def note_passkey_use(tx: Transaction, passkey: Passkey, sign_count: int, *, now_ms: int) -> None:
    """
    Write command: record a login with a passkey.

    :raises Conflict: it was removed, or used meanwhile by an authenticator that counts (a copy of the key)
    """
    changed = tx.execute(
        "UPDATE passkey SET sign_count = ?, last_used_at = ? WHERE id = ? AND (sign_count = 0 OR sign_count < ?)",
        (sign_count, now_ms, passkey.id, sign_count),
    )
    if not changed:
        raise Conflict("this passkey was removed, or is a copy that is older than another one")
    record_login(tx, passkey.account_id, now_ms=now_ms)


def remove_passkeys(tx: Transaction, account_id: int, passkey_id: int | None = None) -> int:
    """
    Write command: remove a passkey of a person, or all, and end the sessions that were begun with them.

    Returns their number. :raises NotFound: the person has no such passkey
    """
    wanted = "account_id = ? AND (? = 0 OR id = ?)"
    parameters = (account_id, passkey_id or 0, passkey_id or 0)
    tx.execute(f"DELETE FROM session WHERE passkey_id IN (SELECT id FROM passkey WHERE {wanted})", parameters)
    removed = tx.execute(f"DELETE FROM passkey WHERE {wanted}", parameters)
    if not removed and passkey_id is not None:
        raise NotFound("passkey", str(passkey_id))
    bump_identity_serial(tx)
    return removed
