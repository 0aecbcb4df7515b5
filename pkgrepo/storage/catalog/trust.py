"""
Which manifests readers may see where content must be trusted, and what still waits for a signature.

A manifest is trusted when one of the keys that are trusted now has signed it, or an index that it is part of. Keys are
named by the sha256 of the public key. Evidence (signatures, statements, bills of material) is seen by everybody: it
is what readers check, and nothing that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction

# The keys by which content is shown, or None where all of it is.
Keys = Sequence[str] | None


@frozen
class Expired:
    """A manifest, or a tag, whose signature did not come in time."""

    package_id: int
    package_key: str
    name: str


def shown_manifests(keys: Keys) -> tuple[str, tuple[str, ...]]:
    """The condition on manifests ``m`` for what readers see, to be put behind others, with its parameters."""
    if keys is None:
        return "", ()
    if not keys:
        return " AND m.evidence = 1", ()
    marks = ", ".join("?" * len(keys))
    signed = f"EXISTS (SELECT 1 FROM manifest_trust x WHERE x.manifest_id = m.id AND x.key_id IN ({marks}))"  # noqa: S608
    return f" AND (m.evidence = 1 OR {signed})", tuple(keys)


def list_shown_tags(r: Reader, package_id: int, keys: Sequence[str], *, after: str, limit: int) -> list[str]:
    """Names of the tags by which readers get something, bytewise ordered, from after ``after``."""
    shown, trusted = shown_manifests(keys)
    rows = r.all(
        f"""
        SELECT t.name FROM tag t WHERE t.package_id = ? AND t.name > ? AND EXISTS (
            SELECT 1 FROM manifest m
            WHERE m.package_id = t.package_id AND m.digest IN (t.digest, t.served){shown}
        )
        ORDER BY t.name LIMIT ?
        """,  # noqa: S608 - our own words
        (package_id, after, *trusted, limit),
    )
    return [row[0] for row in rows]


def shown_images(r: Reader, repository_id: int, keys: Sequence[str], first: str, last: str) -> list[str]:
    """Keys of the images from ``first`` to ``last`` that hold something trusted; evidence alone is no image."""
    shown, trusted = shown_manifests(keys)
    rows = r.all(
        f"""
        SELECT p.key FROM package p WHERE p.repository_id = ? AND p.key BETWEEN ? AND ? AND EXISTS (
            SELECT 1 FROM manifest m WHERE m.package_id = p.id AND m.evidence = 0{shown}
        )
        """,  # noqa: S608 - our own words
        (repository_id, first, last, *trusted),
    )
    return [row[0] for row in rows]


def find_shown_digest(r: Reader, package_id: int, tag: str, keys: Sequence[str]) -> str | None:
    """The digest that readers get by a tag, or None."""
    shown, trusted = shown_manifests(keys)
    row = r.one(
        f"""
        SELECT m.digest FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest IN (t.digest, t.served)
        WHERE t.package_id = ? AND t.name = ?{shown}
        ORDER BY CASE WHEN m.digest = t.digest THEN 0 ELSE 1 END LIMIT 1
        """,  # noqa: S608 - our own words
        (package_id, tag, *trusted),
    )
    return None if row is None else str(row[0])


def is_shown(r: Reader, package_id: int, digest: str, keys: Sequence[str]) -> bool:
    """Whether readers see the manifest of this digest."""
    shown, trusted = shown_manifests(keys)
    query = f"SELECT 1 FROM manifest m WHERE m.package_id = ? AND m.digest = ?{shown}"  # noqa: S608 - our own words
    return r.one(query, (package_id, digest, *trusted)) is not None


def list_evidence(r: Reader, package_id: int, digest: str, tag: str, artifact_type: str, limit: int) -> list[str]:
    """Digests of what may hold signatures of a manifest: at ``tag``, then referrers of that type, the newest first."""
    rows = r.all("SELECT digest FROM tag WHERE package_id = ? AND name = ? AND digest IS NOT NULL", (package_id, tag))
    rows += r.all(
        """
        SELECT digest FROM manifest WHERE package_id = ? AND subject = ? AND artifact_type = ?
        ORDER BY created_at DESC, id DESC LIMIT ?
        """,
        (package_id, digest, artifact_type, limit),
    )
    return list(dict.fromkeys(row[0] for row in rows))[:limit]


def list_signed(r: Reader, package_id: int, suffix: str, artifact_type: str) -> tuple[list[str], list[str]]:
    """Names of an image's tags that end with ``suffix``, and the subjects of its referrers of that type."""
    tags = r.all(
        "SELECT name FROM tag WHERE package_id = ? AND substr(name, ?) = ?", (package_id, -len(suffix), suffix)
    )
    subjects = r.all(
        "SELECT DISTINCT subject FROM manifest WHERE package_id = ? AND artifact_type = ? AND subject IS NOT NULL",
        (package_id, artifact_type),
    )
    return [row[0] for row in tags], [row[0] for row in subjects]


def find_key_set(r: Reader, repository_id: int, image: str) -> tuple[int, str | None] | None:
    """An image's catalog key and the set of keys that its signatures were last held against; None without image."""
    row = r.one(
        """
        SELECT p.id, i.key_set FROM package p LEFT JOIN image_trust i ON i.package_id = p.id
        WHERE p.repository_id = ? AND p.key = ?
        """,
        (repository_id, image),
    )
    return None if row is None else (row[0], row[1])


def set_key_set(tx: Transaction, package_id: int, key_set: str) -> None:
    """Remember that all signatures of an image, if it is still there, were held against a set of keys."""
    tx.execute(
        """
        INSERT INTO image_trust (package_id, key_set) SELECT id, ? FROM package WHERE id = ?
        ON CONFLICT (package_id) DO UPDATE SET key_set = excluded.key_set
        """,
        (key_set, package_id),
    )


def inherited_keys(r: Reader, package_id: int, digest: str) -> list[str]:
    """The keys that have signed an index which names this manifest."""
    rows = r.all(
        """
        SELECT DISTINCT x.key_id FROM manifest_ref f JOIN manifest_trust x ON x.manifest_id = f.manifest_id
        WHERE f.package_id = ? AND f.digest = ? AND f.kind = 'manifest'
        """,
        (package_id, digest),
    )
    return [row[0] for row in rows]


def grant_trust(tx: Transaction, package_id: int, digest: str, keys: Collection[str], trusted: Collection[str]) -> bool:
    """
    Note that keys have signed a manifest, which holds for all that an index names; whether anything is new.

    What the indexes that name the manifest bear, it bears too. What one of the ``trusted`` keys has signed waits for
    nothing any more.
    """
    bearing = sorted({*keys, *inherited_keys(tx, package_id, digest)})
    if not bearing:
        return False
    new = False
    waiting, seen = [digest], {digest}
    while waiting:
        current = waiting.pop()
        row = tx.one("SELECT id FROM manifest WHERE package_id = ? AND digest = ?", (package_id, current))
        if row is None:
            continue
        for key in bearing:
            new |= bool(
                tx.execute(
                    "INSERT INTO manifest_trust (manifest_id, key_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (row[0], key),
                )
            )
        if not set(trusted).isdisjoint(bearing):
            _settle(tx, package_id, current)
        children = tx.all("SELECT digest FROM manifest_ref WHERE manifest_id = ? AND kind = 'manifest'", (row[0],))
        waiting += [child[0] for child in children if child[0] not in seen]
        seen.update(child[0] for child in children)
    return new


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
    rows = r.all(
        """
        SELECT repository_id FROM manifest WHERE expires_at IS NOT NULL
        UNION
        SELECT p.repository_id FROM tag t JOIN package p ON p.id = t.package_id WHERE t.expires_at IS NOT NULL
        """
    )
    return sorted(row[0] for row in rows)


def images_with_waiting_tags(r: Reader, repository_id: int) -> list[str]:
    """Keys of the images of a repository with a tag by which readers do not get yet what it stands for."""
    rows = r.all(
        """
        SELECT DISTINCT p.key FROM tag t JOIN package p ON p.id = t.package_id
        WHERE t.expires_at IS NOT NULL AND p.repository_id = ? ORDER BY p.key
        """,
        (repository_id,),
    )
    return [row[0] for row in rows]


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


def _settle(tx: Transaction, package_id: int, digest: str) -> None:
    tx.execute(
        "UPDATE manifest SET expires_at = NULL WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL",
        (package_id, digest),
    )
    tx.execute(
        """
        UPDATE tag SET served = NULL, expires_at = NULL
        WHERE package_id = ? AND digest = ? AND expires_at IS NOT NULL
        """,
        (package_id, digest),
    )
