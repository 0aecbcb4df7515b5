"""
Second factors of accounts (table ``second_factor``).

============  ===================================================================================================
state         means
============  ===================================================================================================
no row        the account has none: the password alone logs in
not confirmed the person has a secret, and has not shown yet that the app works: the password alone logs in
confirmed     the password logs in with a code of a later step than ``last_step``, or with a recovery code, once
============  ===================================================================================================
"""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.errors import Conflict
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.people.users import end_logins
from pkgrepo.storage.catalog.rows import dump, find, load, rows


@frozen
class SecondFactor:
    """
    The factor of an account: the sealed secret, and hashes of the recovery codes that are left.

    ``last_step`` is the time step (RFC 6238 section 4.2) of the code that was accepted last.
    """

    account_id: int
    secret: str
    confirmed_at: datetime | None
    last_step: int
    recovery: tuple[str, ...]


_SELECT, _factor = rows(SecondFactor, "second_factor", recovery=lambda text: tuple(load(text)))


def find_second_factor(r: Reader, account_id: int) -> SecondFactor | None:
    """The factor of an account, confirmed or not, or None."""
    return find(r, _factor, f"{_SELECT} WHERE account_id = ?", (account_id,))


def begin_second_factor(tx: Transaction, account_id: int, secret: str) -> None:
    """Write command: note a sealed secret. :raises Conflict: the account has a confirmed factor"""
    found = find_second_factor(tx, account_id)
    if found is not None and found.confirmed_at is not None:
        raise Conflict("the account has a second factor: remove it first")
    tx.execute("DELETE FROM second_factor WHERE account_id = ?", (account_id,))
    tx.execute("INSERT INTO second_factor (account_id, secret) VALUES (?, ?)", (account_id, secret))


def confirm_second_factor(
    tx: Transaction, account_id: int, secret: str, step: int, recovery: list[str], *, now_ms: int
) -> None:
    """
    Write command: from now on the account needs the factor. ``recovery`` are hashes of codes.

    What was issued for the password alone ends: login tokens, bearer tokens and sessions.

    :raises Conflict: another secret was noted meanwhile, or the factor is confirmed
    """
    confirmed = tx.execute(
        """
        UPDATE second_factor SET confirmed_at = ?, last_step = ?, recovery = ?
        WHERE account_id = ? AND secret = ? AND confirmed_at IS NULL
        """,
        (now_ms, step, dump(recovery), account_id, secret),
    )
    if not confirmed:
        raise Conflict("the second factor was set up again meanwhile: begin anew")
    end_logins(tx, account_id, now_ms=now_ms)


def use_code(tx: Transaction, account_id: int, secret: str, step: int) -> bool:
    """Write command: accept the code of a time step. False if it, or one of a later step, was accepted before."""
    return bool(
        tx.execute(
            """
            UPDATE second_factor SET last_step = ?
            WHERE account_id = ? AND secret = ? AND last_step < ? AND confirmed_at IS NOT NULL
            """,
            (step, account_id, secret, step),
        )
    )


def use_recovery_code(tx: Transaction, account_id: int, hash: str) -> bool:
    """Write command: accept a recovery code, which is gone then. False if there is none with this hash."""
    found = find_second_factor(tx, account_id)
    if found is None or found.confirmed_at is None or hash not in found.recovery:
        return False
    left = [each for each in found.recovery if each != hash]
    return bool(
        tx.execute(
            "UPDATE second_factor SET recovery = ? WHERE account_id = ? AND recovery = ?",
            (dump(left), account_id, dump(list(found.recovery))),
        )
    )


def replace_recovery_codes(tx: Transaction, account_id: int, hashes: list[str]) -> None:
    """Write command: from now on only these recovery codes count."""
    tx.execute("UPDATE second_factor SET recovery = ? WHERE account_id = ?", (dump(hashes), account_id))


def remove_second_factor(tx: Transaction, account_id: int, *, now_ms: int) -> bool:
    """Write command: the password alone logs in again. Returns whether there was a factor; logins end with it."""
    if not tx.execute("DELETE FROM second_factor WHERE account_id = ?", (account_id,)):
        return False
    end_logins(tx, account_id, now_ms=now_ms)
    return True
