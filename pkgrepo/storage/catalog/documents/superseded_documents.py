"""
Superseded documents: those that newer ones have replaced, kept for clients that were told their addresses before.

A document is added when it is replaced, and removed a week later by housekeeping, or earlier if the repository has
more than ``MOST`` of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import find

LASTS_MS: Final = 7 * 24 * 60 * 60_000
MOST: Final = 500  # of one repository; the last ones are kept


def put_superseded(
    tx: Transaction, repository_id: int, documents: Iterable[tuple[str, str, bytes]], now_ms: int
) -> None:
    """Add documents as (key, package key, body), or keep them for another week."""
    for key, package_key, body in documents:
        tx.send(
            """
            INSERT INTO superseded_document (repository_id, key, package_key, body, expires_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, key) DO UPDATE SET expires_at = excluded.expires_at
            """,
            (repository_id, key, package_key, body, now_ms + LASTS_MS),
        )
    tx.send(
        """
        DELETE FROM superseded_document WHERE repository_id = ? AND key IN (
            SELECT key FROM superseded_document WHERE repository_id = ? ORDER BY expires_at DESC, key
            LIMIT 1000000 OFFSET ?
        )
        """,
        (repository_id, repository_id, MOST),
    )


def find_superseded(r: Reader, repository_id: int, key: str) -> tuple[str, bytes] | None:
    """The package key and the body of a document, or None."""
    sql = "SELECT package_key, body FROM superseded_document WHERE repository_id = ? AND key = ?"
    return find(r, lambda row: (row[0], row[1]), sql, (repository_id, key))


def remove_expired(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove at most ``limit`` documents that are due; returns the number of removed ones."""
    return tx.execute(
        """
        DELETE FROM superseded_document WHERE (repository_id, key) IN (
            SELECT repository_id, key FROM superseded_document WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
        )
        """,
        (now_ms, limit),
    )
