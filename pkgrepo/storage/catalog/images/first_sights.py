"""
First sights: when manifests of upstreams were first seen under an image, and the order in which a tag pointed to them.

Content that a manifest refers to by its digest is at least as old as the manifest. The records outlive the manifests,
so that one that was evicted from a cache is not young again.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import only_row

MOST: Final = 10_000  # of a tag; the oldest is kept beyond that, so that something old enough is left

# A manifest or blob, and all manifests that refer to it, however indirectly.
_HOLDERS = """
    WITH RECURSIVE holder (digest) AS (
        SELECT digest FROM first_sight WHERE repository_id = ? AND package_key = ? AND digest = ?
        UNION
        SELECT digest FROM manifest WHERE package_id = ? AND digest = ?
        UNION
        SELECT digest FROM manifest_ref WHERE package_id = ? AND digest = ?
        UNION
        SELECT m.digest FROM holder h
        JOIN manifest_ref x ON x.package_id = ? AND x.digest = h.digest
        JOIN manifest m ON m.id = x.manifest_id
    )
"""


@frozen
class Age:
    """
    Since when content is known, in milliseconds since the epoch; None if it is not.

    ``evidence``: it is a signature, an attestation or an SBOM, or content of one.
    """

    seen_ms: int | None
    evidence: bool = False


def find_age(r: Reader, repository_id: int, image: str, digest: str) -> Age:
    """Since when a manifest or blob of an image is known: the time of the first one that refers to it at the latest."""
    package = r.one("SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, image))
    package_id = 0 if package is None else package[0]
    seen_ms, evidence = only_row(
        r,
        f"""
        {_HOLDERS}
        SELECT MIN(s.seen_at), MAX(s.evidence) FROM (
            SELECT m.created_at AS seen_at, m.evidence AS evidence
            FROM holder h JOIN manifest m ON m.package_id = ? AND m.digest = h.digest
            UNION ALL
            SELECT f.seen_at, 0
            FROM holder h JOIN first_sight f ON f.repository_id = ? AND f.package_key = ? AND f.digest = h.digest
        ) s
        """,
        (
            *(repository_id, image, digest),
            *(package_id, digest) * 2,
            *(package_id, package_id),
            *(repository_id, image),
        ),
    )
    return Age(seen_ms, bool(evidence))


def note_sight(
    tx: Transaction,
    repository_id: int,
    image: str,
    tag: str,
    digest: str,
    seen_ms: int,
    moved_ms: int,
    *,
    most: int = MOST,
) -> None:
    """Record that a manifest was seen, and that a tag (unless it is empty) points to it from a time on; see L{MOST}."""
    tx.send(
        """
        INSERT INTO first_sight (repository_id, package_key, tag, digest, seen_at, moved_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (repository_id, package_key, digest, tag) DO UPDATE SET moved_at = excluded.moved_at
        """,
        (repository_id, image, tag, digest, seen_ms, moved_ms),
    )
    tx.send(
        """
        DELETE FROM first_sight WHERE repository_id = ? AND package_key = ? AND tag = ? AND moved_at < (
            SELECT moved_at FROM first_sight WHERE repository_id = ? AND package_key = ? AND tag = ?
            ORDER BY moved_at DESC LIMIT 1 OFFSET ?
        ) AND moved_at > (
            SELECT MIN(moved_at) FROM first_sight WHERE repository_id = ? AND package_key = ? AND tag = ?
        )
        """,
        (repository_id, image, tag, repository_id, image, tag, most, repository_id, image, tag),
    )
