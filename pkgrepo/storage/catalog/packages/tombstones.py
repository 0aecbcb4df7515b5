"""Tombstones: paths of deleted files. Nothing is published there again unless the repository's policy allows it."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import LAST_CHARACTER, at, column, exists

# The last clause of every INSERT into tombstone: a path has one tombstone, which records its latest deletion.
UPSERT = """
    ON CONFLICT (repository_id, path) DO UPDATE
    SET package_key = excluded.package_key, sha256 = excluded.sha256, deleted_at = excluded.deleted_at,
        actor = excluded.actor
"""


@frozen
class Tombstone:
    """The record of a deleted file; ``package_key`` is empty if the file belonged to no package."""

    path: str
    package_key: str
    sha256: str
    deleted_at: datetime
    actor: str


def has_tombstone(r: Reader, repository_id: int, path: str) -> bool:
    """Whether a path has a tombstone."""
    return exists(r, "SELECT 1 FROM tombstone WHERE repository_id = ? AND path = ?", (repository_id, path))


def tombstone_paths(r: Reader, repository_id: int, prefix: str, limit: int) -> list[str]:
    """At most ``limit`` paths with a tombstone that start with ``prefix``, in order."""
    return column(
        r,
        "SELECT path FROM tombstone WHERE repository_id = ? AND path >= ? AND path < ? ORDER BY path LIMIT ?",
        (repository_id, prefix, prefix + LAST_CHARACTER, limit),
    )


def tombstones_of_package(r: Reader, repository_id: int, package_key: str) -> list[Tombstone]:
    """The tombstones of a package, ordered by path. The package itself need not exist any more."""
    # In this order the database finds them by an index; by path, it reads all of the repository.
    rows = r.all(
        """
        SELECT path, package_key, sha256, deleted_at, actor FROM tombstone
        WHERE repository_id = ? AND package_key = ? ORDER BY deleted_at
        """,
        (repository_id, package_key),
    )
    return [Tombstone(row[0], row[1], row[2].hex(), at(row[3]), row[4]) for row in sorted(rows)]


def packages_with_tombstones(r: Reader, repository_id: int) -> list[str]:
    """The keys of the packages that have a tombstone, in order."""
    return column(
        r,
        "SELECT DISTINCT package_key FROM tombstone WHERE repository_id = ? AND package_key <> '' ORDER BY package_key",
        (repository_id,),
    )


def restore_tombstone(tx: Transaction, repository_id: int, tombstone: Tombstone) -> bool:
    """Insert a tombstone unless its path has a tombstone or a file; returns whether it was inserted."""
    return bool(
        tx.execute(
            """
            INSERT INTO tombstone (repository_id, path, package_key, sha256, deleted_at, actor)
            SELECT ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM file WHERE repository_id = ? AND path = ?)
            ON CONFLICT (repository_id, path) DO NOTHING
            """,
            (
                repository_id,
                tombstone.path,
                tombstone.package_key,
                bytes.fromhex(tombstone.sha256),
                round(tombstone.deleted_at.timestamp() * 1000),
                tombstone.actor,
                repository_id,
                tombstone.path,
            ),
        )
    )
