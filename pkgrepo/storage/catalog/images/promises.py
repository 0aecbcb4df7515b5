"""
What clients were told is there, for pushes that they have not completed.

A client that has uploaded or mounted a blob, or has asked whether one is there, sends a manifest that refers to it
next; one that has pushed a manifest by its digest sends an index or sets a tag. Until then, and for L{LASTS_MS} at
most, garbage collection leaves these alone, whatever its grace time. A client is one run of a program: what it has
completed ends its own promises, and not those to others that push the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import exists

LASTS_MS = 15 * 60_000
FRESH_MS = 60_000  # a promise made so recently is not written anew
MOST_CLIENTS = 16  # promises of one blob or manifest that are told apart
ANYBODY = ""  # a client that cannot be told from others: nothing but the time ends its promises


def since(now_ms: int) -> int:
    """The time from which promises stand."""
    return now_ms - LASTS_MS - FRESH_MS


def is_fresh(r: Reader, package_id: int, digest: str, client: str, now_ms: int) -> bool:
    """Whether a promise need not be written anew."""
    sql = "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND client IN (?, ?) AND made_at >= ?"
    return exists(r, sql, (package_id, digest, client, ANYBODY, now_ms - FRESH_MS))


def promise(tx: Transaction, package_id: int, digest: str, client: str, now_ms: int) -> None:
    """Promise a blob or manifest of an image to a client."""
    if is_fresh(tx, package_id, digest, client, now_ms):
        return
    others = tx.all(
        "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND client <> ? LIMIT ?",
        (package_id, digest, client, MOST_CLIENTS),
    )
    tx.execute(
        """
        INSERT INTO promise (package_id, digest, client, made_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (package_id, digest, client) DO UPDATE SET made_at = excluded.made_at
        """,
        (package_id, digest, client if len(others) < MOST_CLIENTS else ANYBODY, now_ms),
    )


def fulfil(tx: Transaction, package_id: int, digests: Iterable[str], client: str) -> None:
    """End the promises of some blobs and manifests to a client, which has named them in what it pushed."""
    if client == ANYBODY:
        return
    for digest in digests:
        tx.execute(
            "DELETE FROM promise WHERE package_id = ? AND digest = ? AND client = ?", (package_id, digest, client)
        )


def list_promised(r: Reader, package_id: int, now_ms: int) -> dict[str, int]:
    """The blobs and manifests of an image that are promised to anybody, with the times when that ends."""
    rows = r.all(
        "SELECT digest, MAX(made_at) FROM promise WHERE package_id = ? AND made_at >= ? GROUP BY digest",
        (package_id, since(now_ms)),
    )
    return {row[0]: row[1] + now_ms - since(now_ms) for row in rows}


def is_promised(r: Reader, package_id: int, digest: str, now_ms: int) -> bool:
    """Whether a blob or manifest of an image is promised to anybody."""
    sql = "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND made_at >= ? LIMIT 1"
    return exists(r, sql, (package_id, digest, since(now_ms)))


def forget_promises(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove some promises whose time is over; how many."""
    return tx.execute(
        """
        DELETE FROM promise WHERE (package_id, digest, client) IN (
            SELECT package_id, digest, client FROM promise WHERE made_at < ? ORDER BY made_at LIMIT ?
        )
        """,
        (since(now_ms), limit),
    )
