"""
Removing what removed repositories held, a bounded number of rows at a time.

Blobs are left to garbage collection. Events, audit lines and the download log stay: they tell what happened.
"""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.storage.catalog.rows import column

BATCH = 500  # rows a command; some milliseconds of the writer


def _some(table: str, key: str, owner: str) -> str:
    """A statement that removes rows of an owner: its parameters are the owner, and how many rows at most."""
    return f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {owner} = ? LIMIT ?)"


# Children before parents, so that no statement cascades into more rows than it counts.
_OF_PACKAGE = (
    _some("file", "id", "package_id"),
    _some("manifest", "id", "package_id"),
    _some("version", "id", "package_id"),
    _some("fragment", "package_id, kind, sort, key", "package_id"),
    _some("package_blob", "package_id, sha256", "package_id"),
    _some("promise", "package_id, digest, client", "package_id"),
    _some("tag", "package_id, name", "package_id"),
)
_OF_REPOSITORY = (
    _some("cache_entry", "repository_id, route, path", "repository_id"),
    _some("file", "id", "repository_id"),
    _some("tombstone", "repository_id, path", "repository_id"),
    _some("upload", "uid", "repository_id"),
    _some("download_count", "kind, item_id, day", "repository_id"),
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
    return column(
        r,
        "SELECT id FROM repository WHERE deleted_at IS NOT NULL AND (purge = 1 OR deleted_at < ?) ORDER BY id",
        (before_ms,),
    )


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
