"""
The content of an image for the readable layout: pages of everything, or the objects that a change affects.

The content is the image's manifests, the blobs to which they refer, and its tags. Tags and unreferenced manifests are
listed as readers see them: a tag in quarantine points to the manifest that is served until the new one is signed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Row
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR
from pkgrepo.storage.catalog.rows import at, column, every, load, placeholders, scalar

from .linked_blobs import ALGORITHMS, find_in_package
from .manifests import ManifestRecord, has_manifest


@frozen
class StoredBlob:
    """A blob with the digest that a manifest uses for it; ``locator`` is empty if the blob is suspect."""

    digest: str
    sha256: str
    size: int
    locator: str


@frozen(kw_only=True)
class StoredManifest(ManifestRecord):
    """
    A manifest of an image; ``blobs`` are those to which it refers and that the image has.

    ``locator`` is empty if the manifest's own blob is suspect. ``waiting`` means that the manifest is in quarantine.
    """

    locator: str
    blobs: tuple[StoredBlob, ...]
    created_at: datetime
    waiting: bool


@frozen
class Descriptor:
    """Digest, media type and size (bytes) of a manifest: the fields of a descriptor in an OCI index."""

    digest: str
    media_type: str
    size: int


@frozen
class StoredTag:
    """
    A tag; ``manifest`` is the one that readers get, or None if the only one is in quarantine.

    ``waiting`` is the digest in quarantine to which the tag points once that is signed; None without quarantine.
    """

    name: str
    manifest: Descriptor | None
    updated_at: datetime
    actor: str
    waiting: str | None


_MANIFEST = f"""
    SELECT m.id, m.digest, m.sha256, m.media_type, m.size, {LOCATOR},
        m.subject, m.artifact_type, m.annotations, m.created_at, m.evidence, m.expires_at
    FROM manifest m JOIN blob b ON b.storage_id = ? AND b.sha256 = m.sha256
"""
_TAG = """
    SELECT t.name, m.digest, m.media_type, m.size, t.updated_at, t.actor,
        CASE WHEN t.expires_at IS NULL THEN NULL ELSE t.digest END
    FROM tag t LEFT JOIN manifest m
    ON m.package_id = t.package_id AND m.digest = CASE WHEN t.expires_at IS NULL THEN t.digest ELSE t.served END
"""
# Manifests that readers see under no tag, and to which no index refers. Each subquery joins tag with itself: the first
# look-up then uses an index on the digest. With all conditions on one table the planner reads all tags of the image.
_UNREFERENCED = """
    SELECT m.digest, m.media_type, m.size FROM manifest m WHERE NOT EXISTS (
        SELECT 1 FROM tag x CROSS JOIN tag t
        WHERE x.package_id = m.package_id AND x.digest = m.digest
        AND t.package_id = x.package_id AND t.name = x.name AND t.expires_at IS NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM tag x CROSS JOIN tag t
        WHERE x.package_id = m.package_id AND x.served = m.digest
        AND t.package_id = x.package_id AND t.name = x.name AND t.expires_at IS NOT NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM manifest_ref f WHERE f.package_id = m.package_id AND f.digest = m.digest AND f.kind = 'manifest'
    ) AND m.package_id = ?
"""


def has_at_most(r: Reader, package_id: int, most: int) -> bool:
    """Whether an image has at most ``most`` manifests, and at most ``most`` tags."""
    return all(
        len(r.all(sql, (package_id, most + 1))) <= most
        for sql in (
            "SELECT 1 FROM manifest WHERE package_id = ? LIMIT ?",
            "SELECT 1 FROM tag WHERE package_id = ? LIMIT ?",
        )
    )


def manifests_after(r: Reader, storage_id: int, package_id: int, after: str, limit: int) -> list[StoredManifest]:
    """A page of an image's manifests after the digest ``after``, ordered by digest."""
    rows = r.all(
        f"{_MANIFEST} WHERE m.package_id = ? AND m.digest > ? ORDER BY m.digest LIMIT ?",
        (storage_id, package_id, after, limit),
    )
    return [_stored(r, storage_id, package_id, row) for row in rows]


def find_manifests(r: Reader, storage_id: int, package_id: int, digests: Iterable[str]) -> list[StoredManifest]:
    """The manifests with these digests that an image has."""
    rows = (
        r.one(f"{_MANIFEST} WHERE m.package_id = ? AND m.digest = ?", (storage_id, package_id, digest))
        for digest in digests
    )
    return [_stored(r, storage_id, package_id, row) for row in rows if row is not None]


def tags_after(r: Reader, package_id: int, after: str, limit: int) -> list[StoredTag]:
    """A page of an image's tags after the name ``after``, ordered by name."""
    return every(
        r, _tag, f"{_TAG} WHERE t.package_id = ? AND t.name > ? ORDER BY t.name LIMIT ?", (package_id, after, limit)
    )


def find_tags(r: Reader, package_id: int, names: Iterable[str]) -> list[StoredTag]:
    """The tags with these names that an image has."""
    rows = (r.one(f"{_TAG} WHERE t.package_id = ? AND t.name = ?", (package_id, name)) for name in names)
    return [_tag(row) for row in rows if row is not None]


def unreferenced_after(r: Reader, package_id: int, after: str, limit: int) -> list[Descriptor]:
    """A page of the manifests to which no tag and no index refers, after the digest ``after``, ordered by digest."""
    rows = r.all(f"{_UNREFERENCED} AND m.digest > ? ORDER BY m.digest LIMIT ?", (package_id, after, limit))
    return [Descriptor(*row) for row in rows]


def find_unreferenced(r: Reader, package_id: int, digests: Iterable[str]) -> list[Descriptor]:
    """The manifests with these digests to which no tag and no index refers."""
    rows = (r.one(f"{_UNREFERENCED} AND m.digest = ?", (package_id, digest)) for digest in digests)
    return [Descriptor(*row) for row in rows if row is not None]


def find_parts(r: Reader, storage_id: int, package_id: int, digests: Iterable[str]) -> set[str]:
    """The digests that belong to a manifest of the image, or to a blob of it to which a manifest refers."""
    return {digest for digest in digests if _is_part(r, storage_id, package_id, digest)}


def manifests_referring_to(r: Reader, package_id: int, digests: Collection[str], limit: int) -> list[str]:
    """The digests of at most ``limit`` manifests that refer to one of these digests, in order."""
    return column(
        r,
        f"""
        SELECT DISTINCT m.digest FROM manifest_ref f JOIN manifest m ON m.id = f.manifest_id
        WHERE f.package_id = ? AND f.digest IN ({placeholders(len(digests))}) ORDER BY m.digest LIMIT ?
        """,
        (package_id, *digests, limit),
    )


def digests_of_blob(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests of an image's blob: the given sha256 digest, and its sha512 digest if the image has that."""
    sha256 = bytes.fromhex(digest.partition(":")[2])
    sha512 = scalar(r, "SELECT sha512 FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, sha256))
    return [digest] if sha512 is None else [digest, f"sha512:{sha512.hex()}"]


def tags_of(r: Reader, package_id: int, digest: str, limit: int) -> list[str]:
    """The names of at most ``limit`` tags that point to a manifest, including tags in quarantine."""
    return column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? LIMIT ?", (package_id, digest, limit))


def children_of(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests of the manifests that an index lists."""
    return column(
        r,
        """
        SELECT f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id
        WHERE m.package_id = ? AND m.digest = ? AND f.kind = 'manifest'
        """,
        (package_id, digest),
    )


def blobs_of_manifest(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests of what a manifest refers to, as a blob: some indexes list blobs as if they were manifests."""
    named = r.all(
        """
        SELECT DISTINCT f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id
        WHERE m.package_id = ? AND m.digest = ? ORDER BY f.digest
        """,
        (package_id, digest),
    )
    prefixes = tuple(f"{each}:" for each in ALGORITHMS)
    return [name for (name,) in named if name.startswith(prefixes)]


def content_digests(r: Reader, package_id: int) -> tuple[list[str], list[str]]:
    """The digests of an image's manifests, and the sha256 digests of its blobs."""
    blobs = column(r, "SELECT sha256 FROM package_blob WHERE package_id = ? ORDER BY sha256", (package_id,))
    return (
        column(r, "SELECT digest FROM manifest WHERE package_id = ? ORDER BY digest", (package_id,)),
        [f"sha256:{sha256.hex()}" for sha256 in blobs],
    )


def _stored(r: Reader, storage_id: int, package_id: int, row: Row) -> StoredManifest:
    manifest_id, digest, sha256, media_type, size, locator, subject, artifact_type, annotations, *others = row
    created_ms, evidence, expires_ms = others
    references = r.all(
        "SELECT digest, kind FROM manifest_ref WHERE manifest_id = ? ORDER BY digest, kind", (manifest_id,)
    )
    blobs = []
    for referred in dict.fromkeys(referred for referred, _ in references):
        blob = _find_blob(r, storage_id, package_id, referred)
        if blob is not None:
            blobs.append(blob)
    return StoredManifest(
        digest=digest,
        sha256=sha256.hex(),
        media_type=media_type,
        size=size,
        locator=locator,
        subject=subject,
        artifact_type=artifact_type,
        annotations=load(annotations),
        evidence=bool(evidence),
        references=tuple(references),
        blobs=tuple(blobs),
        created_at=at(created_ms),
        waiting=expires_ms is not None,
    )


def _find_blob(r: Reader, storage_id: int, package_id: int, digest: str) -> StoredBlob | None:
    if digest.partition(":")[0] not in ALGORITHMS:
        return None
    found = find_in_package(r, storage_id, package_id, digest)
    return None if found is None else StoredBlob(digest, found.sha256, found.size, found.locator)


def _is_part(r: Reader, storage_id: int, package_id: int, digest: str) -> bool:
    if has_manifest(r, package_id, digest):
        return True
    named = r.one("SELECT 1 FROM manifest_ref WHERE package_id = ? AND digest = ? LIMIT 1", (package_id, digest))
    return named is not None and _find_blob(r, storage_id, package_id, digest) is not None


def _tag(row: Row) -> StoredTag:
    name, digest, media_type, size, updated_ms, actor, waiting = row
    return StoredTag(name, digest and Descriptor(digest, media_type, size), at(updated_ms), actor, waiting)
