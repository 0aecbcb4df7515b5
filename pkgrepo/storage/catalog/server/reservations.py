"""
Reservations of quotas: bytes that uploads of all processes have announced, and that are not published yet.

============  ============================================  ========================================================
a reservation  is                                           ends
============  ============================================  ========================================================
held          rows of one request, a row for each quota     with the transaction that publishes, or the request
renewed       by its process, while that runs               --
expired       not renewed: its process was killed           by the next one who reserves
============  ============================================  ========================================================

What unfinished uploads of images have received counts as reserved between their requests, for ``UNFINISHED_MS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from attrs import frozen

from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import batches, number, placeholders

from .quotas import COUNTED_IN, QuotaKind, usage_of

UNFINISHED_MS: Final = 600_000  # a client that sends no more for so long has left

T = TypeVar("T")


@frozen
class Allowance:
    """The quota of one subject: bytes, of which ``used`` were published when it was read, and the size of a file."""

    kind: QuotaKind
    subject_id: int
    name: str
    limit: int | None
    used: int
    file_size: int | None


def reserve(tx: Transaction, uid: str, allowances: Sequence[Allowance], size: int, until_ms: int, now_ms: int) -> None:
    """
    Add ``size`` bytes to the reservation of a request, which is held until ``until_ms`` unless it is renewed.

    :raises QuotaExceeded: there is no room for them beside what is used, and what others have reserved
    """
    tx.execute("DELETE FROM quota_reservation WHERE expires_at < ?", (now_ms,))
    for each in allowances:
        if each.limit is None:
            continue
        place = each.kind, each.subject_id
        # what owners use is added up at the beginning of the request, since that takes longer
        used = usage_of(tx, *place).bytes if each.kind in COUNTED_IN else each.used
        sql = "SELECT SUM(size) FROM quota_reservation WHERE kind = ? AND subject_id = ? AND uid <> ?"
        used += number(tx, sql, (*place, uid)) + _unfinished(tx, each, now_ms)
        mine = number(
            tx, "SELECT size FROM quota_reservation WHERE kind = ? AND subject_id = ? AND uid = ?", (*place, uid)
        )
        if used + mine + size > each.limit:
            raise QuotaExceeded(each.name, "bytes", each.limit, used, mine + size)
        tx.execute(
            """
            INSERT INTO quota_reservation (uid, kind, subject_id, size, expires_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (uid, kind, subject_id) DO UPDATE
            SET size = quota_reservation.size + excluded.size, expires_at = excluded.expires_at
            """,
            (uid, *place, size, until_ms),
        )


def renew(tx: Transaction, uids: Sequence[str], until_ms: int, _now_ms: int) -> None:
    """Hold some reservations for longer."""
    for some in batches(uids):
        tx.execute(
            f"UPDATE quota_reservation SET expires_at = ? WHERE uid IN ({placeholders(len(some))})", (until_ms, *some)
        )


def release(tx: Transaction, uid: str) -> None:
    """End a reservation: what it is for is published, or will not be."""
    tx.execute("DELETE FROM quota_reservation WHERE uid = ?", (uid,))


def releasing(uid: str, command: Callable[..., T]) -> Callable[..., T]:
    """A command that publishes what a reservation is for: the bytes count as used instead."""

    def run(tx: Transaction, /, *args: Any) -> T:
        release(tx, uid)
        return command(tx, *args)

    return run


def _unfinished(r: Reader, allowance: Allowance, now_ms: int) -> int:
    """What uploads have received that no request works on at the moment; those have a reservation."""
    if allowance.kind in COUNTED_IN:
        of = f"repository_id IN (SELECT id FROM repository WHERE {COUNTED_IN[allowance.kind]})"
    elif allowance.kind is QuotaKind.USER:
        of = "user_id = ?"
    else:
        return 0
    sql = f"""
        SELECT SUM(position) FROM upload
        WHERE {of} AND touched_at >= ? AND (lease_until IS NULL OR lease_until < ?)
    """
    return number(r, sql, (allowance.subject_id, now_ms - UNFINISHED_MS, now_ms))
