"""
Signatures in an image, and the trust of manifests that is derived from them.

================  =================================================  ================================================
table             a row means                                        written
================  =================================================  ================================================
signature         a stored manifest contains a signature, made with  when signatures are verified; removed together
                  this key, for the content with this digest         with the manifest
manifest_trust    this manifest has a discoverable signature made    by L{derive_trust}, in each transaction that
                  with this key, or an index that lists it has one   changes a signature, tag or reference of it
image_trust       all signatures of the image were verified          by L{set_key_set}; L{mark_unverified} stores a
                  against this set of keys                           random value, so they are verified again
================  =================================================  ================================================

A signature is discoverable if clients can find it: at the tag ``sha256-HEX.sig``, or in a manifest whose subject is the
signed digest. The type of that does not count: cosign looks at the layers of all that refer to an image.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import column, scalar

from .trust import end_quarantine

_TAG = re.compile(r"(sha256)-([0-9a-f]{64})\.sig")  # tag of a signature manifest (cosign 1 and 2)


@frozen
class TrustChange:
    """The keys that a manifest gained and lost as trusted by, and whether a quarantine ended (``settled``)."""

    gained: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    settled: bool = False


def signed_at(tag: str) -> str | None:
    """The digest whose signatures a tag points to; None if the tag is not a signature tag."""
    match = _TAG.fullmatch(tag)
    return None if match is None else f"{match[1]}:{match[2]}"


def signed_by(subject: str | None, tags: Iterable[str]) -> list[str]:
    """The digests for which a manifest may contain signatures, according to its subject and its tags."""
    found = {digest for tag in tags if (digest := signed_at(tag)) is not None}
    if subject is not None:
        found.add(subject)
    return sorted(found)


def list_signature_places(r: Reader, package_id: int) -> list[tuple[str, str]]:
    """The possible signatures in an image, as pairs (digest of the signature manifest, signed digest)."""
    tags = r.all(
        "SELECT name, digest FROM tag WHERE package_id = ? AND name LIKE '%.sig' AND digest IS NOT NULL",
        (package_id,),
    )
    referrers = r.all(
        "SELECT digest, subject FROM manifest WHERE package_id = ? AND subject IS NOT NULL", (package_id,)
    )
    places = {(digest, subject) for name, digest in tags if (subject := signed_at(name)) is not None}
    return sorted(places.union(referrers))


def add_signature(tx: Transaction, package_id: int, manifest: str, subject: str, keys: Collection[str]) -> None:
    """Record that a manifest contains signatures for a digest, made with these keys; no effect without the manifest."""
    for key in keys:
        tx.send(
            """
            INSERT INTO signature (manifest_id, package_id, subject, key_id)
            SELECT id, package_id, ?, ? FROM manifest WHERE package_id = ? AND digest = ? ON CONFLICT DO NOTHING
            """,
            (subject, key, package_id, manifest),
        )


def depending_on(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests whose trust may depend on a manifest: those that it signs and, if it is trusted, its children."""
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
    Update the trust of a manifest and its descendants from the discoverable signatures.

    The quarantine of those that are signed with one of the ``trusted`` keys ends.
    """
    own_id = scalar(tx, "SELECT id FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    if own_id is None:
        return TrustChange()
    before, derived, settled = _stored_keys(tx, own_id), _derived_keys(tx, package_id, digest), False
    if not before and not derived:
        return TrustChange()
    lost = before - derived
    if lost:
        descendants = _with_descendants(tx, package_id, digest)
        for manifest_id, _ in descendants:
            for key in lost:
                tx.send("DELETE FROM manifest_trust WHERE manifest_id = ? AND key_id = ?", (manifest_id, key))
        for _, each in descendants:
            settled |= _add_keys(tx, package_id, each, trusted)
    else:
        settled = _add_keys(tx, package_id, digest, trusted)
    after = _stored_keys(tx, own_id)
    return TrustChange(gained=after - before, lost=before - after, settled=settled)


def find_key_set(r: Reader, repository_id: int, image: str) -> tuple[int, str | None] | None:
    """An image's row id, and the set of keys against which it was verified (or None); None if there is no image."""
    return r.one(
        """
        SELECT p.id, i.key_set FROM package p LEFT JOIN image_trust i ON i.package_id = p.id
        WHERE p.repository_id = ? AND p.key = ?
        """,
        (repository_id, image),
    )


def set_key_set(tx: Transaction, package_id: int, before: str | None, key_set: str) -> None:
    """
    Record that all signatures of an image were verified against a set of keys.

    No effect if the image was removed, or if the stored value is not ``before``: then a signature was pushed meanwhile.
    """
    tx.send(
        """
        INSERT INTO image_trust (package_id, key_set) SELECT id, ? FROM package WHERE id = ?
        ON CONFLICT (package_id) DO UPDATE SET key_set = excluded.key_set WHERE image_trust.key_set = ?
        """,
        (key_set, package_id, before),
    )


def mark_unverified(tx: Transaction, package_id: int, key_set: str | None = None) -> None:
    """Have all signatures of an image verified again, unless they were verified against ``key_set``."""
    tx.send(
        """
        INSERT INTO image_trust (package_id, key_set) VALUES (?, ?)
        ON CONFLICT (package_id) DO UPDATE SET key_set = excluded.key_set WHERE image_trust.key_set <> ?
        """,
        (package_id, f"none {secrets.token_hex(8)}", key_set or ""),
    )


def _stored_keys(r: Reader, manifest_id: int) -> frozenset[str]:
    return frozenset(column(r, "SELECT key_id FROM manifest_trust WHERE manifest_id = ?", (manifest_id,)))


def _derived_keys(r: Reader, package_id: int, digest: str) -> frozenset[str]:
    """The keys of the discoverable signatures for a manifest, and those stored for the indexes that list it."""
    found = column(
        r,
        """
        SELECT s.key_id FROM signature s JOIN manifest m ON m.id = s.manifest_id
        WHERE s.package_id = ? AND s.subject = ? AND (
            m.subject = s.subject
            OR m.digest = (SELECT t.digest FROM tag t WHERE t.package_id = s.package_id AND t.name = ?)
        )
        UNION
        SELECT x.key_id FROM manifest_ref f JOIN manifest_trust x ON x.manifest_id = f.manifest_id
        WHERE f.package_id = ? AND f.digest = ? AND f.kind = 'manifest'
        """,
        (package_id, digest, f"{digest.replace(':', '-')}.sig", package_id, digest),
    )
    return frozenset(found)


def _with_descendants(r: Reader, package_id: int, digest: str) -> list[tuple[int, str]]:
    """A manifest and its existing descendants, as pairs (row id, digest)."""
    found: list[tuple[int, str]] = []
    pending, seen = [digest], {digest}
    while pending:
        current = pending.pop()
        manifest_id = scalar(r, "SELECT id FROM manifest WHERE package_id = ? AND digest = ?", (package_id, current))
        if manifest_id is None:
            continue
        found.append((manifest_id, current))
        sql = "SELECT digest FROM manifest_ref WHERE manifest_id = ? AND kind = 'manifest'"
        children = column(r, sql, (manifest_id,))
        pending += [child for child in children if child not in seen]
        seen.update(children)
    return found


def _add_keys(tx: Transaction, package_id: int, digest: str, trusted: Collection[str]) -> bool:
    """Store the derived keys of a manifest for it and its descendants; returns whether a quarantine ended."""
    keys = _derived_keys(tx, package_id, digest)
    if not keys:
        return False
    settled = False
    for manifest_id, each in _with_descendants(tx, package_id, digest):
        for key in keys:
            tx.send(
                "INSERT INTO manifest_trust (manifest_id, key_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (manifest_id, key),
            )
        if not keys.isdisjoint(trusted):
            settled |= end_quarantine(tx, package_id, each)
    return settled
