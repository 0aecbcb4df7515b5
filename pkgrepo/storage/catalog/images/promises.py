"""
Promises: they protect blobs and manifests from garbage collection during a push, whatever the grace period is.

A client uploads or mounts a blob, or asks whether the image has it, before it pushes a manifest that refers to it. It
pushes a manifest by digest before it pushes an index or a tag that refers to it.

=========  ============================================================================================================
promise    when
=========  ============================================================================================================
made       an answer tells the client that the image has the blob or manifest
renewed    such an answer is sent again, after ``FRESH_MS``
ended      the client pushes a manifest or a tag that refers to the object; at the latest after ``LASTS_MS``
=========  ============================================================================================================

A promise is a row per image, digest and client, and survives a crash. A client is one run of a program: its push ends
its own promises, not those to other clients that push the same content.
"""

from __future__ import annotations

from collections.abc import Iterable

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import exists

LASTS_MS = 15 * 60_000
FRESH_MS = 60_000  # minimum time between two writes of one promise
MAX_CLIENTS = 16  # clients with a promise of their own for one blob or manifest; the others share one
ANY_CLIENT = ""  # client of a shared promise, or of a client without an id; only expiry ends it


def valid_since_ms(now_ms: int) -> int:
    """The earliest time at which a promise that is still valid was made."""
    return now_ms - LASTS_MS - FRESH_MS


def is_fresh(r: Reader, package_id: int, digest: str, client: str, now_ms: int) -> bool:
    """Whether a promise to this client was written within ``FRESH_MS``, so it need not be renewed."""
    sql = "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND client IN (?, ?) AND made_at >= ?"
    return exists(r, sql, (package_id, digest, client, ANY_CLIENT, now_ms - FRESH_MS))


def promise(tx: Transaction, package_id: int, digest: str, client: str, now_ms: int) -> None:
    """Insert or renew the promise of a blob or manifest to a client."""
    if is_fresh(tx, package_id, digest, client, now_ms):
        return
    others = tx.all(
        "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND client <> ? LIMIT ?",
        (package_id, digest, client, MAX_CLIENTS),
    )
    tx.send(
        """
        INSERT INTO promise (package_id, digest, client, made_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (package_id, digest, client) DO UPDATE SET made_at = excluded.made_at
        """,
        (package_id, digest, client if len(others) < MAX_CLIENTS else ANY_CLIENT, now_ms),
    )


def end_promises(tx: Transaction, package_id: int, digests: Iterable[str], client: str) -> None:
    """End a client's promises for some blobs and manifests, to which its pushed manifest or tag now refers."""
    if client == ANY_CLIENT:
        return
    for digest in digests:
        tx.send("DELETE FROM promise WHERE package_id = ? AND digest = ? AND client = ?", (package_id, digest, client))


def list_promised(r: Reader, package_id: int, now_ms: int) -> dict[str, int]:
    """The digests of an image's blobs and manifests with a valid promise, each with the ms when its last one ends."""
    rows = r.all(
        "SELECT digest, MAX(made_at) FROM promise WHERE package_id = ? AND made_at >= ? GROUP BY digest",
        (package_id, valid_since_ms(now_ms)),
    )
    return {row[0]: row[1] + now_ms - valid_since_ms(now_ms) for row in rows}


def is_promised(r: Reader, package_id: int, digest: str, now_ms: int) -> bool:
    """Whether a blob or manifest of an image has a valid promise to any client."""
    sql = "SELECT 1 FROM promise WHERE package_id = ? AND digest = ? AND made_at >= ? LIMIT 1"
    return exists(r, sql, (package_id, digest, valid_since_ms(now_ms)))


def remove_expired_promises(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove at most ``limit`` expired promises; returns the number of removed ones."""
    return tx.execute(
        """
        DELETE FROM promise WHERE (package_id, digest, client) IN (
            SELECT package_id, digest, client FROM promise WHERE made_at < ? ORDER BY made_at LIMIT ?
        )
        """,
        (valid_since_ms(now_ms), limit),
    )
