"""
Visibility and quarantine of images in repositories that require signatures.

A manifest is trusted if it, or an index that lists it, is signed with a key that is trusted now (see L{signatures}).
The id of a key is the sha256 of the public key. Evidence (signatures, attestations, SBOMs) is always visible: readers
need it for their own verification, and it is not runnable.

A pushed manifest that is not trusted is in quarantine, and so is the tag that was moved to it:

=============  ========================================================================================================
column         in quarantine
=============  ========================================================================================================
expires_at     the time when an unsigned manifest or tag is removed, in ms; NULL: not in quarantine
served         of a tag: the digest that readers get until the new one is signed; NULL: nothing
=============  ========================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import column, exists, placeholders, scalar

MAX_INTEGER = 2**63 - 1  # the largest value of a column; later than any time

# The ids of the trusted keys, or None if the repository does not require signatures.
Keys = Sequence[str] | None


@frozen
class Expired:
    """A manifest or a tag whose quarantine expired; ``name`` is its digest or its tag name."""

    package_id: int
    package_key: str
    name: str


def visible(keys: Keys) -> str:
    """
    The SQL condition on a manifest ``m`` that readers may see it, to append to other conditions.

    Its parameters are the keys; without keys it has no parameter.
    """
    if keys is None:
        return ""
    if not keys:
        return " AND m.evidence = 1"
    signed = f"SELECT 1 FROM manifest_trust x WHERE x.manifest_id = m.id AND x.key_id IN ({placeholders(len(keys))})"
    return f" AND (m.evidence = 1 OR EXISTS ({signed}))"


def list_visible_tags(r: Reader, package_id: int, keys: Sequence[str], *, after: str, limit: int) -> list[str]:
    """A page of the names of the tags that readers may see, after the name ``after``, in bytewise order."""
    return column(
        r,
        f"""
        SELECT t.name FROM tag t WHERE t.package_id = ? AND t.name > ? AND EXISTS (
            SELECT 1 FROM manifest m
            WHERE m.package_id = t.package_id AND m.digest IN (t.digest, t.served){visible(keys)}
        )
        ORDER BY t.name LIMIT ?
        """,
        (package_id, after, *keys, limit),
    )


def visible_images(r: Reader, repository_id: int, keys: Sequence[str], first: str, last: str) -> list[str]:
    """The keys of the images from ``first`` to ``last`` (both included) with a trusted manifest besides evidence."""
    return column(
        r,
        f"""
        SELECT p.key FROM package p WHERE p.repository_id = ? AND p.key BETWEEN ? AND ? AND EXISTS (
            SELECT 1 FROM manifest m WHERE m.package_id = p.id AND m.evidence = 0{visible(keys)}
        )
        """,
        (repository_id, first, last, *keys),
    )


def find_visible_digest(r: Reader, package_id: int, tag: str, keys: Sequence[str]) -> str | None:
    """The digest that readers get for a tag, or None."""
    return scalar(
        r,
        f"""
        SELECT m.digest FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest IN (t.digest, t.served)
        WHERE t.package_id = ? AND t.name = ?{visible(keys)}
        ORDER BY CASE WHEN m.digest = t.digest THEN 0 ELSE 1 END LIMIT 1
        """,
        (package_id, tag, *keys),
    )


def is_visible(r: Reader, package_id: int, digest: str, keys: Sequence[str]) -> bool:
    """Whether readers may see the manifest with this digest."""
    query = f"SELECT 1 FROM manifest m WHERE m.package_id = ? AND m.digest = ?{visible(keys)}"
    return exists(r, query, (package_id, digest, *keys))


def quarantine_manifest(tx: Transaction, package_id: int, digest: str, expires_ms: int, *, new: bool) -> None:
    """
    Put a new manifest in quarantine, or restart the quarantine of one that is in it already.

    An older manifest without quarantine is unchanged: it was pushed before signatures were required.
    """
    tx.send(
        "UPDATE manifest SET expires_at = ? WHERE package_id = ? AND digest = ? AND (expires_at IS NOT NULL OR ? = 1)",
        (expires_ms, package_id, digest, int(new)),
    )
    tx.send(
        "UPDATE tag SET expires_at = ? WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL",
        (expires_ms, package_id, digest),
    )


def quarantine_tag(tx: Transaction, package_id: int, name: str, served: str | None, expires_ms: int) -> None:
    """Put a tag that was just moved in quarantine; readers get the digest ``served`` meanwhile, or nothing (None)."""
    tx.send(
        "UPDATE tag SET served = ?, expires_at = ? WHERE package_id = ? AND name = ?",
        (served, expires_ms, package_id, name),
    )


def expired_tags(r: Reader, repository_id: int, now_ms: int, limit: int) -> list[Expired]:
    """At most ``limit`` tags of a repository whose quarantine expired, oldest expiry first."""
    rows = r.all(
        """
        SELECT p.id, p.key, t.name FROM tag t JOIN package p ON p.id = t.package_id
        WHERE t.expires_at <= ? AND p.repository_id = ? ORDER BY t.expires_at LIMIT ?
        """,
        (now_ms, repository_id, limit),
    )
    return [Expired(*row) for row in rows]


def expired_manifests(r: Reader, repository_id: int, now_ms: int, limit: int) -> list[Expired]:
    """At most ``limit`` manifests whose quarantine expired, and to which no index and no tag refers; oldest first."""
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


def images_in_quarantine(r: Reader, repository_id: int, until_ms: int = MAX_INTEGER) -> list[str]:
    """The keys of the images with a manifest or tag whose quarantine expires by ``until_ms``, in order."""
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
    """Point a tag in quarantine to the digest that it serves; returns False if it serves none."""
    return bool(
        tx.execute(
            """
            UPDATE tag SET digest = served, served = NULL, expires_at = NULL
            WHERE package_id = ? AND name = ? AND served IS NOT NULL
            """,
            (package_id, name),
        )
    )


def repositories_in_quarantine(r: Reader) -> list[int]:
    """The ids of the repositories with a manifest or tag in quarantine, in order."""
    found = column(
        r,
        """
        SELECT repository_id FROM manifest WHERE expires_at IS NOT NULL
        UNION
        SELECT p.repository_id FROM tag t JOIN package p ON p.id = t.package_id WHERE t.expires_at IS NOT NULL
        """,
    )
    return sorted(found)


def set_quarantine_expiry(tx: Transaction, repository_id: int, expires_ms: int) -> None:
    """Set the expiry time of all manifests and tags of a repository that are in quarantine."""
    tx.send(
        "UPDATE manifest SET expires_at = ? WHERE repository_id = ? AND expires_at IS NOT NULL",
        (expires_ms, repository_id),
    )
    tx.send(
        """
        UPDATE tag SET expires_at = ?
        WHERE expires_at IS NOT NULL AND package_id IN (SELECT id FROM package WHERE repository_id = ?)
        """,
        (expires_ms, repository_id),
    )


def accept_all(tx: Transaction, repository_id: int) -> None:
    """End the quarantine of all manifests and tags of a repository, because it no longer requires signatures."""
    tx.send(
        "UPDATE manifest SET expires_at = NULL WHERE repository_id = ? AND expires_at IS NOT NULL", (repository_id,)
    )
    tx.send(
        """
        UPDATE tag SET served = NULL, expires_at = NULL
        WHERE expires_at IS NOT NULL AND package_id IN (SELECT id FROM package WHERE repository_id = ?)
        """,
        (repository_id,),
    )


def end_quarantine(tx: Transaction, package_id: int, digest: str) -> bool:
    """End the quarantine of a manifest and of the tags that point to it; returns whether one was in quarantine."""
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
