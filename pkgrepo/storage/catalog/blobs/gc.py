"""
The catalog's part in garbage collection of blobs.

The order, and why no interleaving with uploads loses bytes: ``mark_deleting`` commits only while nothing refers to the
blob; from then on uploads of the same bytes bring their own copy; the bytes at the marked locator are removed; at last
``forget_blob`` removes the row, unless an upload has put another locator there meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import BlobInfo
from pkgrepo.storage.catalog.rows import every, number

from .blobs import to_info

# The rows that keep a blob ``b`` alive. The subqueries are scalar, since joins would be begun at the end with few rows:
# the repositories, of which every one would be looked at for each blob.
_USERS = (
    "file f WHERE f.sha256 = b.sha256 AND f.storage_id = b.storage_id",
    "blob_ref x WHERE x.storage_id = b.storage_id AND x.sha256 = b.sha256",
    """
    package_blob x WHERE x.sha256 = b.sha256 AND b.storage_id = (
        SELECT r.storage_id FROM package p JOIN repository r ON r.id = p.repository_id WHERE p.id = x.package_id
    )
    """,
    """
    manifest m WHERE m.sha256 = b.sha256
    AND b.storage_id = (SELECT r.storage_id FROM repository r WHERE r.id = m.repository_id)
    """,
)
_REFERENCED = "({})".format(" OR ".join(f"EXISTS (SELECT 1 FROM {each})" for each in _USERS))
_REFERENCES = " + ".join(f"(SELECT COUNT(*) FROM {each})" for each in _USERS)


@frozen
class Cursor:
    """Where a page of candidates ended: blobs are looked at in the order of their age."""

    touched_ms: int = -1
    sha256: bytes = b""


def candidates(
    r: Reader, storage_id: int, before_ms: int, limit: int, after: Cursor = Cursor()
) -> tuple[list[BlobInfo], Cursor | None]:
    """
    Live blobs that nothing refers to and nobody touched since ``before_ms``, and where to go on; None at the end.

    ``limit`` bounds the blobs that are looked at, not those found, so that a page costs the same in a storage where
    everything is in use.
    """
    rows = r.all(
        f"""
        SELECT b.sha256, b.size, b.locator, b.digests, b.touched_at, {_REFERENCED}
        FROM blob b
        WHERE b.storage_id = ? AND b.state = 'live' AND b.touched_at < ? AND (b.touched_at, b.sha256) > (?, ?)
        ORDER BY b.touched_at, b.sha256 LIMIT ?
        """,
        (storage_id, before_ms, after.touched_ms, after.sha256, limit),
    )
    found = [to_info(row) for row in rows if not row[5]]
    return found, Cursor(rows[-1][4], rows[-1][0]) if len(rows) == limit else None


def mark_deleting(tx: Transaction, storage_id: int, sha256s: Iterable[str], before_ms: int) -> list[BlobInfo]:
    """Condemn those of the blobs that are still unreferenced and untouched; their bytes may go after the commit."""
    condemned = []
    for sha256 in sha256s:
        row = tx.one(
            f"""
            UPDATE blob AS b SET state = 'deleting'
            WHERE b.storage_id = ? AND b.sha256 = ? AND b.state = 'live' AND b.touched_at < ? AND NOT {_REFERENCED}
            RETURNING sha256, size, locator, digests
            """,
            (storage_id, bytes.fromhex(sha256), before_ms),
        )
        if row is not None:
            condemned.append(to_info(row))
    return condemned


def list_deleting(r: Reader, storage_id: int, limit: int = 500) -> list[BlobInfo]:
    """Condemned blobs whose row is still there: what a crash interrupted."""
    return every(
        r,
        to_info,
        "SELECT sha256, size, locator, digests FROM blob WHERE storage_id = ? AND state = 'deleting' LIMIT ?",
        (storage_id, limit),
    )


def forget_blob(tx: Transaction, storage_id: int, sha256: str, locator: str) -> bool:
    """Remove the row of a condemned copy once its bytes are gone; False when a new copy has taken its place."""
    removed = tx.execute(
        "DELETE FROM blob WHERE storage_id = ? AND sha256 = ? AND locator = ? AND state = 'deleting'",
        (storage_id, bytes.fromhex(sha256), locator),
    )
    return bool(removed)


def freed_with(r: Reader, storage_id: int, going: Mapping[str, int], before_ms: int) -> list[BlobInfo]:
    """
    Blobs that nothing would refer to if so many references to each went, and nobody touched since ``before_ms``.

    ``going`` are numbers of rows of C{package_blob} and C{manifest}, by sha256.
    """
    freed = []
    for sha256, count in going.items():
        row = r.one(
            f"""
            SELECT b.sha256, b.size, b.locator, b.digests, {_REFERENCES}
            FROM blob b WHERE b.storage_id = ? AND b.sha256 = ? AND b.state = 'live' AND b.touched_at < ?
            """,
            (storage_id, bytes.fromhex(sha256), before_ms),
        )
        if row is not None and row[4] == count:
            freed.append(to_info(row))
    return freed


def unreferenced(r: Reader, storage_id: int, since_ms: int = 0) -> tuple[int, int, int]:
    """
    How many live blobs nothing refers to, of those touched since ``since_ms``, their bytes, and the last touch.

    Looks at every one of these blobs: for a reader thread.
    """
    row = r.one(
        f"""
        SELECT COUNT(*), COALESCE(SUM(b.size), 0), COALESCE(MAX(b.touched_at), 0) FROM blob b
        WHERE b.storage_id = ? AND b.state = 'live' AND b.touched_at >= ? AND NOT {_REFERENCED}
        """,
        (storage_id, since_ms),
    )
    assert row is not None
    return row[0], row[1], row[2]


def remove_expired_uploads(tx: Transaction, repository_id: int, before_ms: int, now_ms: int, limit: int) -> int:
    """End some uploads of a repository that nobody touched since ``before_ms`` nor works on; how many went."""
    return tx.execute(
        """
        DELETE FROM upload WHERE uid IN (SELECT uid FROM upload WHERE repository_id = ? AND touched_at < ?
            AND (lease_until IS NULL OR lease_until < ?) ORDER BY touched_at LIMIT ?)
        """,
        (repository_id, before_ms, now_ms, limit),
    )


def count_expired_uploads(r: Reader, repository_id: int, before_ms: int, now_ms: int) -> int:
    """How many uploads ``remove_expired_uploads`` would end in all."""
    return number(
        r,
        """
        SELECT COUNT(*) FROM upload WHERE repository_id = ? AND touched_at < ?
        AND (lease_until IS NULL OR lease_until < ?)
        """,
        (repository_id, before_ms, now_ms),
    )
