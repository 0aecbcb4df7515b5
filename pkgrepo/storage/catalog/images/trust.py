"""
Which manifests readers may see where content must be trusted, and what still waits for a signature.

A manifest is trusted when one of the keys that are trusted now has signed it, or an index that it is part of; what says
so is derived in L{signatures}. Keys are named by the sha256 of the public key. Evidence (signatures, statements, bills
of material) is seen by everybody: it is what readers check, and nothing that runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.clauses import placeholders
from pkgrepo.storage.catalog.rows import column, exists

MOST_INTEGER = 2**63 - 1  # of a column; later than any time

# The keys by which content is shown, or None where all of it is.
Keys = Sequence[str] | None


@frozen
class Expired:
    """A manifest, or a tag, whose signature did not come in time."""

    package_id: int
    package_key: str
    name: str


def shown(keys: Keys) -> str:
    """
    The condition on manifests ``m`` for what readers see, to be put behind others.

    Its parameters are the keys, if there are any.
    """
    if keys is None:
        return ""
    if not keys:
        return " AND m.evidence = 1"
    signed = f"SELECT 1 FROM manifest_trust x WHERE x.manifest_id = m.id AND x.key_id IN ({placeholders(len(keys))})"
    return f" AND (m.evidence = 1 OR EXISTS ({signed}))"


def list_shown_tags(r: Reader, package_id: int, keys: Sequence[str], *, after: str, limit: int) -> list[str]:
    """Names of the tags by which readers get something, bytewise ordered, from after ``after``."""
    return column(
        r,
        f"""
        SELECT t.name FROM tag t WHERE t.package_id = ? AND t.name > ? AND EXISTS (
            SELECT 1 FROM manifest m
            WHERE m.package_id = t.package_id AND m.digest IN (t.digest, t.served){shown(keys)}
        )
        ORDER BY t.name LIMIT ?
        """,
        (package_id, after, *keys, limit),
    )


def shown_images(r: Reader, repository_id: int, keys: Sequence[str], first: str, last: str) -> list[str]:
    """Keys of the images from ``first`` to ``last`` that hold something trusted; evidence alone is no image."""
    return column(
        r,
        f"""
        SELECT p.key FROM package p WHERE p.repository_id = ? AND p.key BETWEEN ? AND ? AND EXISTS (
            SELECT 1 FROM manifest m WHERE m.package_id = p.id AND m.evidence = 0{shown(keys)}
        )
        """,
        (repository_id, first, last, *keys),
    )


def find_shown_digest(r: Reader, package_id: int, tag: str, keys: Sequence[str]) -> str | None:
    """The digest that readers get by a tag, or None."""
    row = r.one(
        f"""
        SELECT m.digest FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest IN (t.digest, t.served)
        WHERE t.package_id = ? AND t.name = ?{shown(keys)}
        ORDER BY CASE WHEN m.digest = t.digest THEN 0 ELSE 1 END LIMIT 1
        """,
        (package_id, tag, *keys),
    )
    return None if row is None else str(row[0])


def is_shown(r: Reader, package_id: int, digest: str, keys: Sequence[str]) -> bool:
    """Whether readers see the manifest of this digest."""
    query = f"SELECT 1 FROM manifest m WHERE m.package_id = ? AND m.digest = ?{shown(keys)}"
    return exists(r, query, (package_id, digest, *keys))


def await_signature(tx: Transaction, package_id: int, digest: str, expires_ms: int, *, new: bool) -> None:
    """Let a manifest wait for its signature, anew if it waits already; one that is older than the rule just stays."""
    tx.execute(
        "UPDATE manifest SET expires_at = ? WHERE package_id = ? AND digest = ? AND (expires_at IS NOT NULL OR ? = 1)",
        (expires_ms, package_id, digest, int(new)),
    )
    tx.execute(
        "UPDATE tag SET expires_at = ? WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL",
        (expires_ms, package_id, digest),
    )


def hold_tag(tx: Transaction, package_id: int, name: str, served: str | None, expires_ms: int) -> None:
    """Let a tag that was just moved wait; readers get ``served`` by it meanwhile, or nothing."""
    tx.execute(
        "UPDATE tag SET served = ?, expires_at = ? WHERE package_id = ? AND name = ?",
        (served, expires_ms, package_id, name),
    )


def expired_tags(r: Reader, repository_id: int, now_ms: int, limit: int) -> list[Expired]:
    """Tags of a repository that waited in vain."""
    rows = r.all(
        """
        SELECT p.id, p.key, t.name FROM tag t JOIN package p ON p.id = t.package_id
        WHERE t.expires_at <= ? AND p.repository_id = ? ORDER BY t.expires_at LIMIT ?
        """,
        (now_ms, repository_id, limit),
    )
    return [Expired(*row) for row in rows]


def expired_manifests(r: Reader, repository_id: int, now_ms: int, limit: int) -> list[Expired]:
    """Manifests of a repository that waited in vain, and that no index of their image and no tag names any more."""
    rows = r.all(
        """
        SELECT p.id, p.key, m.digest FROM manifest m JOIN package p ON p.id = m.package_id
        WHERE m.expires_at <= ? AND m.repository_id = ? AND NOT EXISTS (
            SELECT 1 FROM manifest_ref f
            WHERE f.package_id = m.package_id AND f.digest = m.digest AND f.kind = 'manifest'
        ) AND NOT EXISTS (SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.digest = m.digest)
        ORDER BY m.expires_at LIMIT ?
        """,
        (now_ms, repository_id, limit),
    )
    return [Expired(*row) for row in rows]


def waiting_images(r: Reader, repository_id: int, until_ms: int = MOST_INTEGER) -> list[str]:
    """Keys of the images of a repository in which a manifest or a tag waits until ``until_ms`` at the longest."""
    found = column(
        r,
        """
        SELECT p.key FROM tag t JOIN package p ON p.id = t.package_id
        WHERE t.expires_at <= ? AND p.repository_id = ?
        UNION
        SELECT p.key FROM manifest m JOIN package p ON p.id = m.package_id
        WHERE m.expires_at <= ? AND m.repository_id = ?
        """,
        (until_ms, repository_id, until_ms, repository_id),
    )
    return sorted(found)


def release_tag(tx: Transaction, package_id: int, name: str) -> bool:
    """Give a tag back to what readers get by it; False when that is nothing."""
    return bool(
        tx.execute(
            """
            UPDATE tag SET digest = served, served = NULL, expires_at = NULL
            WHERE package_id = ? AND name = ? AND served IS NOT NULL
            """,
            (package_id, name),
        )
    )


def waiting_repositories(r: Reader) -> list[int]:
    """Catalog keys of the repositories in which anything waits for a signature."""
    found = column(
        r,
        """
        SELECT repository_id FROM manifest WHERE expires_at IS NOT NULL
        UNION
        SELECT p.repository_id FROM tag t JOIN package p ON p.id = t.package_id WHERE t.expires_at IS NOT NULL
        """,
    )
    return sorted(found)


def wait_until(tx: Transaction, repository_id: int, expires_ms: int) -> None:
    """Let all that waits in a repository wait until then."""
    tx.execute(
        "UPDATE manifest SET expires_at = ? WHERE repository_id = ? AND expires_at IS NOT NULL",
        (expires_ms, repository_id),
    )
    tx.execute(
        """
        UPDATE tag SET expires_at = ?
        WHERE expires_at IS NOT NULL AND package_id IN (SELECT id FROM package WHERE repository_id = ?)
        """,
        (expires_ms, repository_id),
    )


def stop_waiting(tx: Transaction, repository_id: int) -> None:
    """Accept all that waits in a repository, as when its rule was taken back."""
    tx.execute(
        "UPDATE manifest SET expires_at = NULL WHERE repository_id = ? AND expires_at IS NOT NULL", (repository_id,)
    )
    tx.execute(
        """
        UPDATE tag SET served = NULL, expires_at = NULL
        WHERE expires_at IS NOT NULL AND package_id IN (SELECT id FROM package WHERE repository_id = ?)
        """,
        (repository_id,),
    )


def settle(tx: Transaction, package_id: int, digest: str) -> bool:
    """End the wait of a manifest and of the tags that stand for it; whether there was any."""
    manifests = tx.execute(
        "UPDATE manifest SET expires_at = NULL WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL",
        (package_id, digest),
    )
    tags = tx.execute(
        """
        UPDATE tag SET served = NULL, expires_at = NULL
        WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL
        """,
        (package_id, digest),
    )
    return bool(manifests or tags)
