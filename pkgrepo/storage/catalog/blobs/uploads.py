"""
Uploads that take several requests, each perhaps on another worker.

======================  ==================================================  ===================================
an upload               who moves it on                                     what survives a crash
======================  ==================================================  ===================================
rests                   a request takes the lease                           the row, and the bytes up to
                                                                            ``position``
is leased               its holder renews, keeps (then it rests) or         the same: bytes beyond were never
                        removes it; a lease that ran out is anybody's       acknowledged
is gone                 nobody                                              nothing
======================  ==================================================  ===================================
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Transaction

EXPIRES_MS = 24 * 3_600_000  # without a byte; a client that comes back later begins again
EXPIRED_AT_ONCE = 50  # rows that go in one transaction


@frozen
class UploadSession:
    """
    ``position`` bytes are durable; ``state`` is the blob store's word for them. ``user_id`` began it.

    ``algorithms`` are the digests that the blob store computes beside sha256.
    """

    uid: str
    repository_id: int
    storage_id: int
    package_key: str
    user_id: int | None
    state: bytes
    position: int
    leased: bool
    algorithms: tuple[str, ...]


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
    """Begin an upload; some that nobody touched for a day go meanwhile, and the store sweeps their bytes."""
    tx.execute(
        """
        INSERT INTO upload (uid, repository_id, storage_id, package_key, user_id, algorithms, state, created_at,
                            touched_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (uid, repository_id, storage_id, package_key, user_id, " ".join(algorithms), state, now_ms, now_ms),
    )
    tx.execute(
        "DELETE FROM upload WHERE uid IN (SELECT uid FROM upload WHERE touched_at < ? ORDER BY touched_at LIMIT ?)",
        (now_ms - EXPIRES_MS, EXPIRED_AT_ONCE),
    )


def find_upload(r: Reader, uid: str, now_ms: int) -> UploadSession | None:
    """The upload of this id, or None when there is none or nobody touched it for a day."""
    row = r.one(f"{_SESSION} WHERE uid = ? AND touched_at >= ?", (uid, now_ms - EXPIRES_MS))
    return None if row is None else _session(row, now_ms)


def lease_upload(tx: Transaction, uid: str, holder: str, until_ms: int, now_ms: int) -> UploadSession | None:
    """
    The upload as it is now, the holder's alone until ``until_ms``; None when there is none.

    ``leased`` in it says that somebody else has it, and that the lease was not given.
    """
    session = find_upload(tx, uid, now_ms)
    if session is None or session.leased:
        return session
    tx.execute(
        "UPDATE upload SET lease_by = ?, lease_until = ?, touched_at = ? WHERE uid = ?", (holder, until_ms, now_ms, uid)
    )
    return session


def renew_lease(tx: Transaction, uid: str, holder: str, until_ms: int, now_ms: int) -> bool:
    """Keep a lease for longer; whether it was still the holder's."""
    changed = tx.execute(
        "UPDATE upload SET lease_until = ?, touched_at = ? WHERE uid = ? AND lease_by = ?",
        (until_ms, now_ms, uid, holder),
    )
    return bool(changed)


def keep_upload(tx: Transaction, uid: str, holder: str, state: bytes, position: int, now_ms: int) -> bool:
    """Note how far an upload has come, and give the lease back; False when somebody else took it meanwhile."""
    changed = tx.execute(
        """
        UPDATE upload SET state = ?, position = ?, lease_by = NULL, lease_until = NULL, touched_at = ?
        WHERE uid = ? AND lease_by = ?
        """,
        (state, position, now_ms, uid, holder),
    )
    return bool(changed)


def release_lease(tx: Transaction, uid: str, holder: str) -> None:
    """Give a lease back and leave the upload as it was."""
    tx.execute("UPDATE upload SET lease_by = NULL, lease_until = NULL WHERE uid = ? AND lease_by = ?", (uid, holder))


def remove_upload(tx: Transaction, uid: str) -> bool:
    """End an upload; whether there was one."""
    return bool(tx.execute("DELETE FROM upload WHERE uid = ?", (uid,)))


def unfinished_uploads(r: Reader, repository_id: int, now_ms: int) -> tuple[int, int]:
    """How many uploads of a repository have begun and not ended, and when somebody last worked on one."""
    row = r.one(
        "SELECT COUNT(*), COALESCE(MAX(touched_at), 0) FROM upload WHERE repository_id = ? AND touched_at >= ?",
        (repository_id, now_ms - EXPIRES_MS),
    )
    assert row is not None
    return row[0], row[1]


def _session(row: Row, now_ms: int) -> UploadSession:
    return UploadSession(
        uid=row[0],
        repository_id=row[1],
        storage_id=row[2],
        package_key=row[3],
        user_id=row[4],
        state=row[5],
        position=row[6],
        leased=row[7] is not None and row[7] > now_ms,
        algorithms=tuple(row[8].split()),
    )
