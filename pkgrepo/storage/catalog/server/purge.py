"""
Purge: deletes the rows of removed repositories, a limited number in each transaction.

Garbage collection deletes the blobs later. Events, audit entries and the download log stay, as a record of the past.
"""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.storage.catalog.rows import column, scalar
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.quotas import QuotaKind, remove_limits

BATCH = 500  # rows in one transaction; takes some milliseconds


def _delete_some(table: str, key: str, owner: str) -> str:
    """The statement that deletes rows of an owner. Its parameters: the owner's key, the maximum number of rows."""
    return f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {owner} = ? LIMIT ?)"


# Children before parents, so that no statement cascades into more rows than it counts.
_ROWS_OF_PACKAGE = (
    _delete_some("file", "id", "package_id"),
    _delete_some("manifest", "id", "package_id"),
    _delete_some("version", "id", "package_id"),
    _delete_some("fragment", "package_id, kind, sort, key", "package_id"),
    _delete_some("package_blob", "package_id, sha256", "package_id"),
    _delete_some("push_lease", "package_id, digest, client", "package_id"),
    _delete_some("tag", "package_id, name", "package_id"),
    _delete_some("package_spelling", "package_id", "package_id"),
)
_ROWS_OF_REPOSITORY = (
    _delete_some("upstream_document", "id", "repository_id"),
    _delete_some("file", "id", "repository_id"),
    _delete_some("tombstone", "repository_id, path", "repository_id"),
    "DELETE FROM trash_blob WHERE (trash_id, sha256) IN (SELECT k.trash_id, k.sha256 FROM trash_blob k "
    "JOIN trash t ON t.id = k.trash_id WHERE t.repository_id = ? LIMIT ?)",
    "DELETE FROM trash_item WHERE id IN (SELECT i.id FROM trash_item i JOIN trash t ON t.id = i.trash_id "
    "WHERE t.repository_id = ? LIMIT ?)",
    _delete_some("trash", "id", "repository_id"),
    _delete_some("upload", "uid", "repository_id"),
    "DELETE FROM deployment_file WHERE (deployment_id, path) IN (SELECT f.deployment_id, f.path FROM deployment_file f "
    "JOIN deployment d ON d.id = f.deployment_id WHERE d.repository_id = ? LIMIT ?)",
    _delete_some("deployment", "id", "repository_id"),
    _delete_some("checksum_claim", "repository_id, path, algorithm", "repository_id"),
    _delete_some("appended_line", "repository_id, seq", "repository_id"),
    _delete_some("appended_list", "repository_id", "repository_id"),
    _delete_some("first_sight", "repository_id, package_key, digest, tag", "repository_id"),
    _delete_some("followed_wheels", "repository_id", "repository_id"),
    _delete_some("unconverted_wheel", "repository_id, path", "repository_id"),
    _delete_some("superseded_document", "repository_id, key", "repository_id"),
    _delete_some("retired_name", "repository_id, package_key", "repository_id"),
    _delete_some("cache_count", "repository_id, day", "repository_id"),
    _delete_some("download_count", "kind, item_id, day", "repository_id"),
)


async def purge_due(catalog: ICatalog, before_ms: int) -> int:
    """
    Purge the repositories that are due. Returns how many they were.

    It can be repeated after a crash, and run in several processes at the same time.
    """
    due = await catalog.scan(due_repositories, before_ms)
    for repository_id in due:
        while await catalog.write(purge_repository, repository_id):
            pass
    return len(due)


def due_repositories(r: Reader, before_ms: int) -> list[int]:
    """Catalog keys of the repositories removed with ``purge``, or removed before ``before_ms``."""
    return column(
        r,
        "SELECT id FROM repository WHERE deleted_at IS NOT NULL AND (purge = 1 OR deleted_at < ?) ORDER BY id",
        (before_ms,),
    )


def mark_for_purge(tx: Transaction, repository_id: int) -> list[int]:
    """Mark a removed repository and its companions for ``purge_repository``. Returns their ids, its own last."""
    ids = column(
        tx,
        "SELECT id FROM repository WHERE (id = ? OR parent_id = ? OR parent_id IN "
        "(SELECT id FROM repository WHERE parent_id = ?)) AND deleted_at IS NOT NULL ORDER BY id DESC",
        (repository_id, repository_id, repository_id),
    )
    for each in ids:
        tx.execute("UPDATE repository SET purge = 1 WHERE id = ?", (each,))
    return ids


def purge_repository(tx: Transaction, repository_id: int, limit: int = BATCH) -> bool:
    """
    Delete about ``limit`` rows of a removed repository. True if rows may be left: call it again until it returns False.

    The row of the repository is deleted last, so after a crash the purge continues with the remaining rows.
    """
    if tx.one("SELECT 1 FROM repository WHERE id = ? AND deleted_at IS NOT NULL", (repository_id,)) is None:
        return False
    left = limit
    while left > 0:
        package = tx.one("SELECT id FROM package WHERE repository_id = ? LIMIT 1", (repository_id,))
        if package is None:
            break
        left = _delete_rows(tx, _ROWS_OF_PACKAGE, package[0], left)
        if left > 0:
            left -= tx.execute("DELETE FROM package WHERE id = ?", (package[0],))
    left = _delete_rows(tx, _ROWS_OF_REPOSITORY, repository_id, left)
    if left > 0:
        uid = scalar(tx, "SELECT uid FROM repository WHERE id = ?", (repository_id,))
        tx.execute("DELETE FROM repository WHERE id = ?", (repository_id,))
        settings.remove(tx, settings.retention_key(str(uid)))
        settings.remove_all(tx, settings.burst_prefix(str(uid)))
        remove_limits(tx, QuotaKind.REPOSITORY, repository_id)
    return left <= 0


def _delete_rows(tx: Transaction, statements: tuple[str, ...], owner_id: int, left: int) -> int:
    for statement in statements:
        if left > 0:
            left -= tx.execute(statement, (owner_id, left))
    return left
