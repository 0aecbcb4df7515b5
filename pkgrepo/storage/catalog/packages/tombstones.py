"""Tombstones: paths of deleted files, under which nothing is published again unless the repository's policy says so."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.columns import LAST, at
from pkgrepo.storage.catalog.rows import column, exists

# The end of an INSERT of tombstones: the latest deletion is what a path remembers.
LATEST = """
    ON CONFLICT (repository_id, path) DO UPDATE
    SET package_key = excluded.package_key, sha256 = excluded.sha256, deleted_at = excluded.deleted_at,
        actor = excluded.actor
"""


@frozen
class Tombstone:
    """What is left of a deleted file."""

    path: str
    package_key: str
    sha256: str
    deleted_at: datetime
    actor: str


def is_burned(r: Reader, repository_id: int, path: str) -> bool:
    """Whether a file that was at this path was deleted, and the path is not given out again."""
    return exists(r, "SELECT 1 FROM tombstone WHERE repository_id = ? AND path = ?", (repository_id, path))


def burned_below(r: Reader, repository_id: int, prefix: str, limit: int) -> list[str]:
    """Burned paths that begin with a prefix, in order."""
    return column(
        r,
        "SELECT path FROM tombstone WHERE repository_id = ? AND path >= ? AND path < ? ORDER BY path LIMIT ?",
        (repository_id, prefix, prefix + LAST, limit),
    )


def tombstones_of_package(r: Reader, repository_id: int, package_key: str) -> list[Tombstone]:
    """The tombstones of a package, which may be gone itself, by path."""
    rows = r.all(
        """
        SELECT path, package_key, sha256, deleted_at, actor FROM tombstone
        WHERE repository_id = ? AND package_key = ? ORDER BY path
        """,
        (repository_id, package_key),
    )
    return [Tombstone(row[0], row[1], row[2].hex(), at(row[3]), row[4]) for row in rows]


def burned_packages(r: Reader, repository_id: int) -> list[str]:
    """The keys of the packages that have tombstones, in order."""
    return column(
        r,
        "SELECT DISTINCT package_key FROM tombstone WHERE repository_id = ? AND package_key <> '' ORDER BY package_key",
        (repository_id,),
    )


def restore_tombstone(tx: Transaction, repository_id: int, tombstone: Tombstone) -> bool:
    """Put a tombstone back, unless there is one or a file at its path; whether it was put."""
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
