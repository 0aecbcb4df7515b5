"""
Removing what removed repositories held, a bounded number of rows at a time.

Blobs are left to garbage collection. Events, audit lines and the download log stay: they tell what happened.
"""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader, Transaction

BATCH = 500  # rows a command; some milliseconds of the writer

# Children before parents, so that no statement cascades into more rows than it counts.
_OF_PACKAGE = (
    "DELETE FROM file WHERE id IN (SELECT id FROM file WHERE package_id = ? LIMIT ?)",
    "DELETE FROM manifest WHERE id IN (SELECT id FROM manifest WHERE package_id = ? LIMIT ?)",
    "DELETE FROM version WHERE id IN (SELECT id FROM version WHERE package_id = ? LIMIT ?)",
    """
    DELETE FROM fragment WHERE (package_id, kind, sort, key) IN
        (SELECT package_id, kind, sort, key FROM fragment WHERE package_id = ? LIMIT ?)
    """,
    """
    DELETE FROM package_blob WHERE (package_id, sha256) IN
        (SELECT package_id, sha256 FROM package_blob WHERE package_id = ? LIMIT ?)
    """,
    """
    DELETE FROM promise WHERE (package_id, digest, client) IN
        (SELECT package_id, digest, client FROM promise WHERE package_id = ? LIMIT ?)
    """,
    "DELETE FROM tag WHERE (package_id, name) IN (SELECT package_id, name FROM tag WHERE package_id = ? LIMIT ?)",
)
_OF_REPOSITORY = (
    """
    DELETE FROM cache_entry WHERE (repository_id, route, path) IN
        (SELECT repository_id, route, path FROM cache_entry WHERE repository_id = ? LIMIT ?)
    """,
    "DELETE FROM file WHERE id IN (SELECT id FROM file WHERE repository_id = ? LIMIT ?)",
    """
    DELETE FROM tombstone WHERE (repository_id, path) IN
        (SELECT repository_id, path FROM tombstone WHERE repository_id = ? LIMIT ?)
    """,
    "DELETE FROM upload WHERE uid IN (SELECT uid FROM upload WHERE repository_id = ? LIMIT ?)",
    """
    DELETE FROM download_count WHERE (kind, item_id, day) IN
        (SELECT kind, item_id, day FROM download_count WHERE repository_id = ? LIMIT ?)
    """,
)


async def purge_due(catalog: ICatalog, before_ms: int) -> int:
    """
    Purge every repository that was removed for good, or before ``before_ms``; how many that were.

    It goes on where a crash or another process left off, and does no harm beside one that does the same.
    """
    due = await catalog.scan(due_repositories, before_ms)
    for repository_id in due:
        while await catalog.write(purge_repository, repository_id):
            pass
    return len(due)


def due_repositories(r: Reader, before_ms: int) -> list[int]:
    """Catalog keys of the repositories that were removed for good, or before ``before_ms``."""
    rows = r.all(
        "SELECT id FROM repository WHERE deleted_at IS NOT NULL AND (purge = 1 OR deleted_at < ?) ORDER BY id",
        (before_ms,),
    )
    return [row[0] for row in rows]


def purge_repository(tx: Transaction, repository_id: int, limit: int = BATCH) -> bool:
    """
    Remove about ``limit`` rows of a removed repository; whether there are more.

    Call it again until it says no, which it also says where nothing is left. The row of the repository goes last, so
    a crash between two calls loses nothing.
    """
    if tx.one("SELECT 1 FROM repository WHERE id = ? AND deleted_at IS NOT NULL", (repository_id,)) is None:
        return False
    left = limit
    while left > 0:
        package = tx.one("SELECT id FROM package WHERE repository_id = ? LIMIT 1", (repository_id,))
        if package is None:
            break
        left = _clear(tx, _OF_PACKAGE, package[0], left)
        if left > 0:
            left -= tx.execute("DELETE FROM package WHERE id = ?", (package[0],))
    left = _clear(tx, _OF_REPOSITORY, repository_id, left)
    if left > 0:
        tx.execute("DELETE FROM repository WHERE id = ?", (repository_id,))
    return left <= 0


def _clear(tx: Transaction, statements: tuple[str, ...], owner_id: int, left: int) -> int:
    for statement in statements:
        if left > 0:
            left -= tx.execute(statement, (owner_id, left))
    return left
