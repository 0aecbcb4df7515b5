"""
Upload sessions: uploads that take several requests, which different workers may handle.

======================  ==================================================  ===================================
state of a session      next state                                          what survives a crash
======================  ==================================================  ===================================
idle                    leased: a request takes the lease                   the row, and the bytes up to
                                                                            ``position``
leased                  idle: the holder saves or releases it, the lease    the same; later bytes were never
                        expires, or a server starts that runs alone;        acknowledged
                        removed: the upload ends
removed                 none                                                nothing
======================  ==================================================  ===================================
"""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import frozen

from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.rows import at, exists, number, only_row, put

MOST_OPEN = 1000  # uploads of one user; docker sends five layers of an image at a time
IDLE_MS = 3_600_000  # after which an upload may give way to another one of its user
EXPIRES_MS = 24 * 3_600_000  # after the last touch; a client that returns later starts a new upload
EXPIRED_BATCH = 50  # rows that one transaction removes


@frozen
class UploadSession:
    """
    One upload in progress.

    ``position`` is the number of durable bytes, and ``state`` the blob store's opaque state to resume there.
    ``user_id`` is the user who started it. ``leased`` means that a request holds a lease that has not expired, and
    ``abandoned`` that it has: the request neither saved nor released the upload, and may still write to it.
    ``algorithms`` are the digests that the blob store computes in addition to sha256.
    """

    uid: str
    repository_id: int
    storage_id: int
    package_key: str
    user_id: int | None
    state: bytes
    position: int
    leased: bool
    abandoned: bool
    algorithms: tuple[str, ...]


@frozen
class OpenUpload:
    """An upload that has not ended, as it is shown; ``username`` is None if the caller was anonymous, or is removed."""

    uid: str
    package_key: str
    username: str | None
    position: int
    leased: bool
    created_at: datetime
    touched_at: datetime

    @property
    def expires_at(self) -> datetime:
        """When it is removed unless it is used before."""
        return self.touched_at + timedelta(milliseconds=EXPIRES_MS)


_SESSION = """
    SELECT uid, repository_id, storage_id, package_key, user_id, state, position, lease_until, algorithms
    FROM upload
"""


def add_upload(
    tx: Transaction,
    *,
    uid: str,
    repository_id: int,
    storage_id: int,
    package_key: str,
    user_id: int | None,
    state: bytes,
    now_ms: int,
    algorithms: tuple[str, ...] = (),
) -> None:
    """
    Insert an upload session, and remove some expired ones, whose bytes the blob store sweeps later.

    If the user has ``MOST_OPEN``, some that have been idle for longest give way; see ``check_room``.
    """
    if _count_open(tx, user_id, now_ms) >= MOST_OPEN:
        tx.send(
            """
            DELETE FROM upload WHERE uid IN (
                SELECT uid FROM upload WHERE user_id IS NOT DISTINCT FROM ? AND touched_at < ?
                ORDER BY touched_at LIMIT ?
            )
            """,
            (user_id, now_ms - IDLE_MS, EXPIRED_BATCH),
        )
    put(
        tx,
        "upload",
        uid=uid,
        repository_id=repository_id,
        storage_id=storage_id,
        package_key=package_key,
        user_id=user_id,
        algorithms=" ".join(algorithms),
        state=state,
        created_at=now_ms,
        touched_at=now_ms,
    )
    tx.send(
        "DELETE FROM upload WHERE uid IN (SELECT uid FROM upload WHERE touched_at < ? ORDER BY touched_at LIMIT ?)",
        (now_ms - EXPIRES_MS, EXPIRED_BATCH),
    )


def check_room(r: Reader, user_id: int | None, now_ms: int) -> None:
    """
    Check that a user may begin another upload; all anonymous writers are one user.

    :raises Forbidden: there are ``MOST_OPEN``, and each of them was used within ``IDLE_MS``
    """
    if _count_open(r, user_id, now_ms) >= MOST_OPEN and not exists(
        r,
        "SELECT 1 FROM upload WHERE user_id IS NOT DISTINCT FROM ? AND touched_at < ? LIMIT 1",
        (user_id, now_ms - IDLE_MS),
    ):
        raise Forbidden(
            f"there are {MOST_OPEN} unfinished uploads of yours: finish or cancel some, or wait for an hour"
        )


def _count_open(r: Reader, user_id: int | None, now_ms: int) -> int:
    """The number of uploads of a user, which is not counted beyond ``MOST_OPEN``."""
    sql = """
        SELECT COUNT(*) FROM (
            SELECT 1 FROM upload WHERE user_id IS NOT DISTINCT FROM ? AND touched_at >= ? LIMIT ?
        ) x
    """
    return number(r, sql, (user_id, now_ms - EXPIRES_MS, MOST_OPEN))


def find_upload(r: Reader, uid: str, now_ms: int) -> UploadSession | None:
    """The upload with this id, or None if there is none or it has expired (``EXPIRES_MS``)."""
    row = r.one(f"{_SESSION} WHERE uid = ? AND touched_at >= ?", (uid, now_ms - EXPIRES_MS))
    return None if row is None else _session(row, now_ms)


def lease_upload(tx: Transaction, uid: str, holder: str, until_ms: int, now_ms: int) -> UploadSession | None:
    """
    Take the lease of an upload until ``until_ms``; returns the upload as it was before, or None if there is none.

    If ``leased`` is True in the result, another holder has the lease, and it was not taken.
    """
    session = find_upload(tx, uid, now_ms)
    if session is None or session.leased:
        return session
    tx.send(
        "UPDATE upload SET lease_by = ?, lease_until = ?, touched_at = ? WHERE uid = ?", (holder, until_ms, now_ms, uid)
    )
    return session


def renew_lease(tx: Transaction, uid: str, holder: str, until_ms: int, now_ms: int) -> bool:
    """Extend a lease, even an expired one; returns False if it was released or another holder took it."""
    changed = tx.execute(
        "UPDATE upload SET lease_until = ?, touched_at = ? WHERE uid = ? AND lease_by = ?",
        (until_ms, now_ms, uid, holder),
    )
    return bool(changed)


def save_upload(tx: Transaction, uid: str, holder: str, state: bytes, position: int, now_ms: int) -> bool:
    """Store the progress of an upload and release the lease; returns False if another holder took the lease."""
    changed = tx.execute(
        """
        UPDATE upload SET state = ?, position = ?, lease_by = NULL, lease_until = NULL, touched_at = ?
        WHERE uid = ? AND lease_by = ?
        """,
        (state, position, now_ms, uid, holder),
    )
    return bool(changed)


def release_lease(tx: Transaction, uid: str, holder: str) -> None:
    """Release a lease without a change of the upload's progress."""
    tx.send("UPDATE upload SET lease_by = NULL, lease_until = NULL WHERE uid = ? AND lease_by = ?", (uid, holder))


def release_all_leases(tx: Transaction) -> None:
    """Release the leases of all uploads: none of the processes that held them runs any more."""
    tx.send("UPDATE upload SET lease_by = NULL, lease_until = NULL WHERE lease_until IS NOT NULL")


def remove_leased_upload(tx: Transaction, uid: str, holder: str) -> bool:
    """Remove an upload; returns False if the lease was released or another holder took it, which leaves the upload."""
    return bool(tx.execute("DELETE FROM upload WHERE uid = ? AND lease_by = ?", (uid, holder)))


def remove_upload(tx: Transaction, uid: str) -> bool:
    """Remove an upload; returns whether it existed."""
    return bool(tx.execute("DELETE FROM upload WHERE uid = ?", (uid,)))


def list_open_uploads(
    r: Reader, repository_id: int, now_ms: int, *, after: str = "", uid: str | None = None, limit: int
) -> list[OpenUpload]:
    """The uploads of a repository that have not expired, behind the id ``after``; or the one with this id alone."""
    rows = r.all(
        f"""
        SELECT x.uid, x.package_key, u.username, x.position, x.lease_until, x.created_at, x.touched_at
        FROM upload x LEFT JOIN account u ON u.id = x.user_id
        WHERE x.repository_id = ? AND x.touched_at >= ? AND x.uid > ? {"" if uid is None else "AND x.uid = ?"}
        ORDER BY x.uid LIMIT ?
        """,
        (repository_id, now_ms - EXPIRES_MS, after, *(() if uid is None else (uid,)), limit),
    )
    return [
        OpenUpload(uid, key, username, position, until_ms is not None and until_ms > now_ms, at(created), at(touched))
        for uid, key, username, position, until_ms, created, touched in rows
    ]


def unfinished_uploads(r: Reader, repository_id: int, now_ms: int, idle_ms: int = EXPIRES_MS) -> tuple[int, int]:
    """The uploads of a repository that were used within ``idle_ms`` or are leased: number, latest use (0: none)."""
    return only_row(
        r,
        """
        SELECT COUNT(*), COALESCE(MAX(touched_at), 0) FROM upload
        WHERE repository_id = ? AND (touched_at >= ? OR lease_until >= ?)
        """,
        (repository_id, now_ms - idle_ms, now_ms),
    )


def _session(row: Row, now_ms: int) -> UploadSession:
    *stored, lease_until, algorithms = row
    leased = lease_until is not None and lease_until > now_ms
    abandoned = lease_until is not None and not leased
    return UploadSession(*(*stored, leased, abandoned, tuple(algorithms.split())))
