"""
Checksum claims: checksums that clients sent ahead of their file, which is checked against them when it arrives.

=======  ==============================================================================================================
claim    when
=======  ==============================================================================================================
made     a checksum arrives and its file is not there; another one of the same algorithm replaces it
kept     the file arrives and is another one: it is refused, and the claim stays for the next attempt
removed  the file arrives and is the right one; at the latest ``LASTS_MS`` after the claim was made, by housekeeping
=======  ==============================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import batches, number, placeholders

LASTS_MS: Final = 60 * 60_000
MOST_CLAIMS: Final = 10_000  # of one repository; a deploy has a few hundred files


def put_claim(
    tx: Transaction,
    repository_id: int,
    path: str,
    algorithm: str,
    digest: str,
    now_ms: int,
    *,
    most: int = MOST_CLAIMS,
) -> bool:
    """Add or replace a claim, unless the repository has ``most``; returns whether it did. ``digest`` is in hex."""
    sql = "SELECT COUNT(*) FROM (SELECT 1 FROM checksum_claim WHERE repository_id = ? LIMIT ?) AS c"
    if number(tx, sql, (repository_id, most)) >= most:
        return False
    tx.send(
        """
        INSERT INTO checksum_claim (repository_id, path, algorithm, digest, made_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (repository_id, path, algorithm) DO UPDATE
        SET digest = excluded.digest, made_at = excluded.made_at
        """,
        (repository_id, path, algorithm, digest, now_ms),
    )
    return True


def claims_for(r: Reader, repository_id: int, path: str, now_ms: int) -> Mapping[str, str]:
    """The valid claims for the file at a path: digests by algorithm."""
    return dict(
        r.all(
            "SELECT algorithm, digest FROM checksum_claim WHERE repository_id = ? AND path = ? AND made_at >= ?",
            (repository_id, path, now_ms - LASTS_MS),
        )
    )


def remove_claims(tx: Transaction, repository_id: int, paths: Sequence[str]) -> None:
    """Remove the claims for the files at these paths."""
    for some in batches(paths):
        tx.send(
            f"DELETE FROM checksum_claim WHERE repository_id = ? AND path IN ({placeholders(len(some))})",
            (repository_id, *some),
        )


def remove_expired_claims(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove at most ``limit`` expired claims; returns the number of removed ones."""
    return tx.execute(
        """
        DELETE FROM checksum_claim WHERE (repository_id, path, algorithm) IN (
            SELECT repository_id, path, algorithm FROM checksum_claim WHERE made_at < ? ORDER BY made_at LIMIT ?
        )
        """,
        (now_ms - LASTS_MS, limit),
    )
