"""
Garbage collection of blobs: the queries and commands of the catalog.

Concurrent uploads never lose bytes, because of this order:

1. ``mark_deleting`` marks a blob, in a transaction that checks that the blob has no reference. From its commit on, an
   upload of the same bytes stores a new copy under another locator.
2. The caller removes the bytes at the locator of the marked row.
3. ``remove_blob_row`` removes the row, unless an upload has replaced its locator meanwhile.

While a backup runs nothing is marked: what its copy of the catalog names must stay until it is copied. The job of the
backup begins before its snapshot, and ends with its lease, which a killed process renews no more.

Expired upload sessions are removed here as well, and the files and images that contain a damaged blob are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import BlobInfo
from pkgrepo.storage.catalog.blobs.blobs import to_info
from pkgrepo.storage.catalog.rows import batches, column, every, exists, number, only_row, placeholders

# The rows that refer to a blob ``b``. The storage is compared with a scalar subquery: with a join, the query planner
# starts at the small repository table and reads all of its rows for each blob.
_REFERRING_ROWS = (
    "file f WHERE f.sha256 = b.sha256 AND f.storage_id = b.storage_id",
    "upstream_document d WHERE d.sha256 = b.sha256 AND d.storage_id = b.storage_id",
    "deployment_file s WHERE s.sha256 = b.sha256 AND s.storage_id = b.storage_id",
    """
    package_blob x WHERE x.sha256 = b.sha256 AND b.storage_id = (
        SELECT r.storage_id FROM package p JOIN repository r ON r.id = p.repository_id WHERE p.id = x.package_id
    )
    """,
    """
    manifest m WHERE m.sha256 = b.sha256
    AND b.storage_id = (SELECT r.storage_id FROM repository r WHERE r.id = m.repository_id)
    """,
    """
    trash_blob k WHERE k.sha256 = b.sha256 AND b.storage_id = (
        SELECT r.storage_id FROM trash t JOIN repository r ON r.id = t.repository_id WHERE t.id = k.trash_id
    )
    """,
)
REFERENCED = "({})".format(" OR ".join(f"EXISTS (SELECT 1 FROM {each})" for each in _REFERRING_ROWS))
_REFERENCE_COUNT = " + ".join(f"(SELECT COUNT(*) FROM {each})" for each in _REFERRING_ROWS)


BACKUP = "backup"  # the kind and key of the job of a backup


@frozen
class Cursor:
    """The position after a page of candidates, which are ordered by (touched_at, sha256)."""

    touched_ms: int = -1
    sha256: bytes = b""


def candidates(
    r: Reader, storage_id: int, before_ms: int, limit: int, after: Cursor = Cursor()
) -> tuple[list[BlobInfo], Cursor | None]:
    """
    A page of live blobs without references, last touched before ``before_ms``; and the next cursor, None at the end.

    ``limit`` is the number of blobs examined, not of those returned, so a page has the same cost in a storage where
    all blobs are referenced.
    """
    rows = r.all(
        f"""
        SELECT b.sha256, b.size, b.locator, b.digests, b.touched_at, {REFERENCED}
        FROM blob b
        WHERE b.storage_id = ? AND b.state = 'live' AND b.touched_at < ? AND (b.touched_at, b.sha256) > (?, ?)
        ORDER BY b.touched_at, b.sha256 LIMIT ?
        """,
        (storage_id, before_ms, after.touched_ms, after.sha256, limit),
    )
    found = [to_info(tuple(info)) for *info, is_referenced in rows if not is_referenced]
    if len(rows) < limit:
        return found, None
    sha256, *_, touched_ms, _ = rows[-1]
    return found, Cursor(touched_ms, sha256)


def backup_runs(r: Reader, now_ms: int) -> bool:
    """Whether a backup holds off the marking of blobs."""
    sql = "SELECT 1 FROM job WHERE kind = ? AND key = ? AND state = 'running' AND lease_until >= ?"
    return exists(r, sql, (BACKUP, BACKUP, now_ms))


def mark_deleting(
    tx: Transaction, storage_id: int, sha256s: Iterable[str], before_ms: int, now_ms: int
) -> list[BlobInfo]:
    """
    Mark as deleting those of the blobs that still have no reference and were last touched before ``before_ms``.

    Returns the marked blobs, none while a backup runs. The caller removes their bytes after the commit.
    """
    marked: list[BlobInfo] = []
    if backup_runs(tx, now_ms):
        return marked
    for sha256 in sha256s:
        row = tx.one(
            f"""
            UPDATE blob AS b SET state = 'deleting'
            WHERE b.storage_id = ? AND b.sha256 = ? AND b.state = 'live' AND b.touched_at < ? AND NOT {REFERENCED}
            RETURNING sha256, size, locator, digests
            """,
            (storage_id, bytes.fromhex(sha256), before_ms),
        )
        if row is not None:
            marked.append(to_info(row))
    return marked


def mark_unseen(tx: Transaction, storage_id: int, sha256s: Iterable[str], since_ms: int, now_ms: int) -> list[BlobInfo]:
    """
    Mark as deleting those of the blobs that were stored at or after ``since_ms`` and that nothing refers to.

    Only for blobs that no client could see, which therefore need no grace period. Returns the marked blobs.
    """
    new = [
        sha256
        for sha256 in sha256s
        if exists(
            tx,
            "SELECT 1 FROM blob WHERE storage_id = ? AND sha256 = ? AND created_at >= ?",
            (storage_id, bytes.fromhex(sha256), since_ms),
        )
    ]
    return mark_deleting(tx, storage_id, new, now_ms + 1, now_ms)


def list_deleting(r: Reader, storage_id: int, limit: int = 500) -> list[BlobInfo]:
    """Blobs that are marked as deleting, for example by a run that crashed before it removed them."""
    return every(
        r,
        to_info,
        "SELECT sha256, size, locator, digests FROM blob WHERE storage_id = ? AND state = 'deleting' LIMIT ?",
        (storage_id, limit),
    )


def remove_blob_row(tx: Transaction, storage_id: int, sha256: str, locator: str) -> bool:
    """
    Remove the row of a blob that is marked as deleting; call this after its bytes were removed.

    Returns False if an upload has replaced the locator meanwhile.
    """
    removed = tx.execute(
        "DELETE FROM blob WHERE storage_id = ? AND sha256 = ? AND locator = ? AND state = 'deleting'",
        (storage_id, bytes.fromhex(sha256), locator),
    )
    return bool(removed)


def freed_by_removal(r: Reader, storage_id: int, reference_counts: Mapping[str, int], before_ms: int) -> list[BlobInfo]:
    """
    The live blobs that would have no reference after a removal, and were last touched before ``before_ms``.

    ``reference_counts`` has, by sha256, the number of rows of ``package_blob`` and ``manifest`` that would be removed.
    """
    freed = []
    for sha256, count in reference_counts.items():
        row = r.one(
            f"""
            SELECT b.sha256, b.size, b.locator, b.digests, {_REFERENCE_COUNT}
            FROM blob b WHERE b.storage_id = ? AND b.sha256 = ? AND b.state = 'live' AND b.touched_at < ?
            """,
            (storage_id, bytes.fromhex(sha256), before_ms),
        )
        *info, references = row or (None,)
        if references == count:
            freed.append(to_info(tuple(info)))
    return freed


def unreferenced(r: Reader, storage_id: int, since_ms: int = 0) -> tuple[int, int, int]:
    """
    The live blobs without references that were touched at or after ``since_ms``: number, bytes, and latest touch in ms.

    Reads every blob touched since then: call it on a reader thread.
    """
    return only_row(
        r,
        f"""
        SELECT COUNT(*), COALESCE(SUM(b.size), 0), COALESCE(MAX(b.touched_at), 0) FROM blob b
        WHERE b.storage_id = ? AND b.state = 'live' AND b.touched_at >= ? AND NOT {REFERENCED}
        """,
        (storage_id, since_ms),
    )


def remove_expired_uploads(tx: Transaction, repository_id: int, before_ms: int, now_ms: int, limit: int) -> int:
    """
    Remove at most ``limit`` uploads that were last touched before ``before_ms`` and are not leased at ``now_ms``.

    Returns the number of removed uploads.
    """
    return tx.execute(
        """
        DELETE FROM upload WHERE uid IN (SELECT uid FROM upload WHERE repository_id = ? AND touched_at < ?
            AND (lease_until IS NULL OR lease_until < ?) ORDER BY touched_at LIMIT ?)
        """,
        (repository_id, before_ms, now_ms, limit),
    )


def count_expired_uploads(r: Reader, repository_id: int, before_ms: int, now_ms: int) -> int:
    """The number of uploads that ``remove_expired_uploads`` would remove without a limit."""
    return number(
        r,
        """
        SELECT COUNT(*) FROM upload WHERE repository_id = ? AND touched_at < ?
        AND (lease_until IS NULL OR lease_until < ?)
        """,
        (repository_id, before_ms, now_ms),
    )


@frozen
class BlobReference:
    """A file, or an image (with empty ``version`` and ``path``), that contains a blob."""

    repository_id: int
    package_key: str
    package: str
    version: str = ""
    path: str = ""


def blobs_in_repository(r: Reader, repository_id: int, sha256s: Sequence[str]) -> set[str]:
    """The blobs, of some, that a file, a manifest, an image or the trash of a repository contains, by sha256."""
    found: set[str] = set()
    for some in batches([bytes.fromhex(each) for each in sha256s]):
        marks = placeholders(len(some))
        rows = column(
            r,
            f"""
            SELECT sha256 FROM file WHERE repository_id = ? AND sha256 IN ({marks})
            UNION SELECT sha256 FROM manifest WHERE repository_id = ? AND sha256 IN ({marks})
            UNION SELECT x.sha256 FROM package_blob x JOIN package p ON p.id = x.package_id
            WHERE p.repository_id = ? AND x.sha256 IN ({marks})
            UNION SELECT k.sha256 FROM trash_blob k JOIN trash t ON t.id = k.trash_id
            WHERE t.repository_id = ? AND k.sha256 IN ({marks})
            """,
            (repository_id, *some, repository_id, *some, repository_id, *some, repository_id, *some),
        )
        found.update(each.hex() for each in rows)
    return found


def blob_references(r: Reader, storage_id: int, sha256: str, limit: int) -> list[BlobReference]:
    """At most ``limit`` files, and at most ``limit`` images, that contain a blob of a storage."""
    key = bytes.fromhex(sha256)
    files = r.all(
        """
        SELECT f.repository_id, COALESCE(p.key, ''), COALESCE(p.name, ''), COALESCE(v.text, ''), f.path
        FROM file f LEFT JOIN package p ON p.id = f.package_id LEFT JOIN version v ON v.id = f.version_id
        WHERE f.sha256 = ? AND f.storage_id = ? ORDER BY f.id LIMIT ?
        """,
        (key, storage_id, limit),
    )
    images = r.all(
        """
        SELECT p.repository_id, p.key, p.name FROM package p JOIN repository r ON r.id = p.repository_id
        WHERE r.storage_id = ? AND p.id IN (
            SELECT package_id FROM package_blob WHERE sha256 = ? UNION SELECT package_id FROM manifest WHERE sha256 = ?
        )
        ORDER BY p.id LIMIT ?
        """,
        (storage_id, key, key, limit),
    )
    return [BlobReference(*row) for row in (*files, *images)]
