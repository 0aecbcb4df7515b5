"""
Which keys have signed what in an image, and which manifests are trusted by that.

================  =================================================  ================================================
table             says                                               is written
================  =================================================  ================================================
signature         a stored manifest holds a signature, by this key,  when signatures are verified; the row goes with
                  of the content of this digest                      the manifest
manifest_trust    the keys by which a manifest is shown: of the      by L{derive_trust}, in the transaction of every
                  signatures in place for it, and of those for the   change of what it follows from
                  indexes that name it
image_trust       the set of keys against which all signatures of    by L{set_key_set}; another value says that some
                  the image have been held                           signature is still to be verified
================  =================================================  ================================================

A signature is in place while clients find it: at the tag C{sha256-HEX.sig}, or in a manifest of the type L{BUNDLE}
whose subject is that digest.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import column

from .trust import settle

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"  # type of a referrer with signatures (cosign 3)

_TAG = re.compile(r"(sha256)-([0-9a-f]{64})\.sig")  # of signatures (cosign 1 and 2)


@frozen
class TrustChange:
    """The keys that a manifest bears now and did not before, those it bears no more, and whether a wait has ended."""

    gained: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    settled: bool = False


def signed_at(tag: str) -> str | None:
    """The digest whose signatures are at a tag; None for other tags."""
    match = _TAG.fullmatch(tag)
    return None if match is None else f"{match[1]}:{match[2]}"


def signed_by(subject: str | None, artifact_type: str | None, tags: Iterable[str]) -> list[str]:
    """The digests that a manifest may hold signatures of, by its own words and by its tags."""
    found = {digest for tag in tags if (digest := signed_at(tag)) is not None}
    if subject is not None and artifact_type == BUNDLE:
        found.add(subject)
    return sorted(found)


def list_places(r: Reader, package_id: int) -> list[tuple[str, str]]:
    """Everything in an image that may hold signatures: the digest of the manifest, and that of what it may sign."""
    tags = r.all(
        "SELECT name, digest FROM tag WHERE package_id = ? AND name LIKE '%.sig' AND digest IS NOT NULL",
        (package_id,),
    )
    referrers = r.all(
        "SELECT digest, subject FROM manifest WHERE package_id = ? AND artifact_type = ? AND subject IS NOT NULL",
        (package_id, BUNDLE),
    )
    places = {(digest, subject) for name, digest in tags if (subject := signed_at(name)) is not None}
    return sorted(places.union((row[0], row[1]) for row in referrers))


def note_signature(tx: Transaction, package_id: int, manifest: str, subject: str, keys: Collection[str]) -> None:
    """Note that a manifest, if it is still there, holds signatures of a digest by these keys."""
    for key in keys:
        tx.execute(
            """
            INSERT INTO signature (manifest_id, package_id, subject, key_id)
            SELECT id, package_id, ?, ? FROM manifest WHERE package_id = ? AND digest = ? ON CONFLICT DO NOTHING
            """,
            (subject, key, package_id, manifest),
        )


def depending_on(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests of manifests whose trust may follow from a manifest: what it signs, and what it names if trusted."""
    return column(
        r,
        """
        SELECT s.subject FROM signature s JOIN manifest m ON m.id = s.manifest_id
        WHERE m.package_id = ? AND m.digest = ?
        UNION
        SELECT f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id
        WHERE m.package_id = ? AND m.digest = ? AND f.kind = 'manifest'
        AND EXISTS (SELECT 1 FROM manifest_trust x WHERE x.manifest_id = m.id)
        """,
        (package_id, digest, package_id, digest),
    )


def derive_trust(tx: Transaction, package_id: int, digest: str, trusted: Collection[str]) -> TrustChange:
    """
    Bring the trust of a manifest, and of all that it names, in line with the signatures that are in place.

    What one of the ``trusted`` keys has signed waits for nothing any more.
    """
    row = tx.one("SELECT id FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    if row is None:
        return TrustChange()
    before, deserved, settled = _borne(tx, row[0]), _deserved(tx, package_id, digest), False
    if not before and not deserved:
        return TrustChange()
    lost = before - deserved
    if lost:
        family = _family(tx, package_id, digest)
        for manifest_id, _ in family:
            for key in lost:
                tx.execute("DELETE FROM manifest_trust WHERE manifest_id = ? AND key_id = ?", (manifest_id, key))
        for _, each in family:
            settled |= _grant(tx, package_id, each, trusted)
    else:
        settled = _grant(tx, package_id, digest, trusted)
    after = _borne(tx, row[0])
    return TrustChange(gained=after - before, lost=before - after, settled=settled)


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


def set_key_set(tx: Transaction, package_id: int, before: str | None, key_set: str) -> None:
    """
    Remember that all signatures of an image, if it is still there, were held against a set of keys.

    Unless it is another one than ``before`` by now: then a signature has come meanwhile.
    """
    tx.execute(
        """
        INSERT INTO image_trust (package_id, key_set) SELECT id, ? FROM package WHERE id = ?
        ON CONFLICT (package_id) DO UPDATE SET key_set = excluded.key_set WHERE image_trust.key_set = ?
        """,
        (key_set, package_id, before),
    )


def mark_unverified(tx: Transaction, package_id: int, key_set: str | None = None) -> None:
    """Have the signatures of an image held against the keys anew, unless all were against this set."""
    tx.execute(
        """
        INSERT INTO image_trust (package_id, key_set) VALUES (?, ?)
        ON CONFLICT (package_id) DO UPDATE SET key_set = excluded.key_set WHERE image_trust.key_set <> ?
        """,
        (package_id, f"none {secrets.token_hex(8)}", key_set or ""),
    )


def _borne(r: Reader, manifest_id: int) -> frozenset[str]:
    return frozenset(column(r, "SELECT key_id FROM manifest_trust WHERE manifest_id = ?", (manifest_id,)))


def _deserved(r: Reader, package_id: int, digest: str) -> frozenset[str]:
    """The keys of the signatures in place for a manifest, and those that the indexes bear which name it."""
    found = column(
        r,
        """
        SELECT s.key_id FROM signature s JOIN manifest m ON m.id = s.manifest_id
        WHERE s.package_id = ? AND s.subject = ? AND (
            (m.subject = s.subject AND m.artifact_type = ?)
            OR m.digest = (SELECT t.digest FROM tag t WHERE t.package_id = s.package_id AND t.name = ?)
        )
        UNION
        SELECT x.key_id FROM manifest_ref f JOIN manifest_trust x ON x.manifest_id = f.manifest_id
        WHERE f.package_id = ? AND f.digest = ? AND f.kind = 'manifest'
        """,
        (package_id, digest, BUNDLE, f"{digest.replace(':', '-')}.sig", package_id, digest),
    )
    return frozenset(found)


def _family(r: Reader, package_id: int, digest: str) -> list[tuple[int, str]]:
    """A manifest and all that it names and that are there, with their catalog keys."""
    found: list[tuple[int, str]] = []
    waiting, seen = [digest], {digest}
    while waiting:
        current = waiting.pop()
        row = r.one("SELECT id FROM manifest WHERE package_id = ? AND digest = ?", (package_id, current))
        if row is None:
            continue
        found.append((row[0], current))
        named = r.all("SELECT digest FROM manifest_ref WHERE manifest_id = ? AND kind = 'manifest'", (row[0],))
        waiting += [child[0] for child in named if child[0] not in seen]
        seen.update(child[0] for child in named)
    return found


def _grant(tx: Transaction, package_id: int, digest: str, trusted: Collection[str]) -> bool:
    """Give a manifest the keys that it deserves, and all that it names; whether that ended a wait."""
    keys = _deserved(tx, package_id, digest)
    if not keys:
        return False
    settled = False
    for manifest_id, each in _family(tx, package_id, digest):
        for key in keys:
            tx.execute(
                "INSERT INTO manifest_trust (manifest_id, key_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (manifest_id, key),
            )
        if not keys.isdisjoint(trusted):
            settled |= settle(tx, package_id, each)
    return settled
