"""
Logins that programs have begun, and that people approve in a browser (device authorization, RFC 8628).

========  ==========================================================================================================
state     what moves it
========  ==========================================================================================================
pending   the program has begun; a person who types the user code approves or denies it
approved  the program gets a token with its device code, and the row is removed
denied    the program is told so
========  ==========================================================================================================

Rows are removed when they expire. Only hashes of both codes are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import column, dump, find, insert, load, rows
from pkgrepo.untrusted.networks import client_network

MOST: Final = 1000  # at a time
MOST_OF_ADDRESS: Final = 30  # at a time, from one address or network of IPv6, which an office may share


@frozen
class LoginRequest:
    """
    One login. ``name`` is what the token will be called, ``scopes`` and ``days`` what the program asks for it.

    ``port`` is where the program listens on the machine of the person, None if it does not; ``proof`` is then the
    sha256 of what the browser takes there. ``address`` and ``client`` (a User-Agent) are those of the program.
    """

    id: int
    name: str
    scopes: Sequence[str] | None
    days: int | None
    port: int | None
    address: str
    client: str
    created_at: datetime
    expires_at: datetime
    state: str
    user_id: int | None
    proof: bytes | None


_SELECT, _request = rows(LoginRequest, "login_request", scopes=load)


def add_login_request(
    tx: Transaction,
    *,
    device_hash: bytes,
    user_hash: bytes,
    name: str,
    scopes: Sequence[str] | None,
    days: int | None,
    port: int | None,
    address: str,
    client: str,
    now_ms: int,
    expires_ms: int,
) -> bool:
    """Write command: add a pending login; False if there are too many, or (hardly ever) one with this user code."""
    tx.execute("DELETE FROM login_request WHERE expires_at <= ?", (now_ms,))
    network, waiting = client_network(address), column(tx, "SELECT address FROM login_request", ())
    if len(waiting) >= MOST or sum(client_network(each) == network for each in waiting) >= MOST_OF_ADDRESS:
        return False
    if tx.one("SELECT 1 FROM login_request WHERE user_hash = ?", (user_hash,)) is not None:
        return False
    insert(
        tx,
        "login_request",
        device_hash=device_hash,
        user_hash=user_hash,
        name=name,
        scopes=dump(scopes),
        days=days,
        port=port,
        address=address,
        client=client,
        created_at=now_ms,
        expires_at=expires_ms,
    )
    return True


def find_by_user_code(r: Reader, user_hash: bytes, now_ms: int) -> LoginRequest | None:
    """The pending login whose user code has this hash, or None."""
    sql = f"{_SELECT} WHERE user_hash = ? AND state = 'pending' AND expires_at > ?"
    return find(r, _request, sql, (user_hash, now_ms))


def find_by_device_code(r: Reader, device_hash: bytes, now_ms: int) -> LoginRequest | None:
    """The login of the program with this device code, or None."""
    return find(r, _request, f"{_SELECT} WHERE device_hash = ? AND expires_at > ?", (device_hash, now_ms))


def decide_login(
    tx: Transaction, request: LoginRequest, *, user_id: int, approved: bool, proof: bytes | None, now_ms: int
) -> None:
    """Write command: approve or deny a pending login. :raises NotFound: it is not pending any more"""
    sql = "UPDATE login_request SET state = ?, user_id = ?, proof = ? WHERE id = ? AND state = ? AND expires_at > ?"
    state = "approved" if approved else "denied"
    if not tx.execute(sql, (state, user_id, proof, request.id, "pending", now_ms)):
        raise NotFound("login", "with this code")


def take_login(tx: Transaction, request: LoginRequest) -> bool:
    """Remove a login that is approved, or denied, and that the program was told of; False if it is gone already."""
    return bool(tx.execute("DELETE FROM login_request WHERE id = ?", (request.id,)))
