"""
What an image consists of, for whoever copies or describes it: page by page, or what a change touched.

Its parts are its manifests and the blobs that they refer to. A tag stands here for what readers get by it, and beside
that is named what waits for its signature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Row
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR
from pkgrepo.storage.catalog.clauses import placeholders
from pkgrepo.storage.catalog.columns import at, load
from pkgrepo.storage.catalog.rows import column, every

from .linked_blobs import ALGORITHMS, find_in_package
from .manifests import ManifestRecord, has_manifest


@frozen
class StoredBlob:
    """A blob under the name by which a manifest refers to it; ``locator`` is empty when the bytes are damaged."""

    digest: str
    sha256: str
    size: int
    locator: str


@frozen(kw_only=True)
class StoredManifest(ManifestRecord):
    """
    A manifest of an image with those of its blobs that the image has.

    ``locator`` is empty if its bytes were found damaged. ``waiting`` means that it is in quarantine.
    """

    locator: str
    blobs: tuple[StoredBlob, ...]
    created_at: datetime
    waiting: bool


@frozen
class Named:
    """A manifest as an index names it."""

    digest: str
    media_type: str
    size: int


@frozen
class StoredTag:
    """
    A tag with the manifest that readers get by it, or None.

    ``waiting`` is the digest that they get once it is signed; None when that is the same.
    """

    name: str
    manifest: Named | None
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
# What no tag stands for, as readers see it, and no other manifest names. The tags are joined with themselves since they
# are then found by an index over their digests; by one condition more the planner looks through all tags of the image.
_LOOSE = """
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
    """Whether an image has no more than so many manifests, and no more tags."""
    return all(
        len(r.all(sql, (package_id, most + 1))) <= most
        for sql in (
            "SELECT 1 FROM manifest WHERE package_id = ? LIMIT ?",
            "SELECT 1 FROM tag WHERE package_id = ? LIMIT ?",
        )
    )


def manifests_after(r: Reader, storage_id: int, package_id: int, after: str, limit: int) -> list[StoredManifest]:
    """Manifests of an image by digest, from after one."""
    rows = r.all(
        f"{_MANIFEST} WHERE m.package_id = ? AND m.digest > ? ORDER BY m.digest LIMIT ?",
        (storage_id, package_id, after, limit),
    )
    return [_stored(r, storage_id, package_id, row) for row in rows]


def find_manifests(r: Reader, storage_id: int, package_id: int, digests: Iterable[str]) -> list[StoredManifest]:
    """Those of these manifests that an image has."""
    rows = (
        r.one(f"{_MANIFEST} WHERE m.package_id = ? AND m.digest = ?", (storage_id, package_id, digest))
        for digest in digests
    )
    return [_stored(r, storage_id, package_id, row) for row in rows if row is not None]


def tags_after(r: Reader, package_id: int, after: str, limit: int) -> list[StoredTag]:
    """Tags of an image by name, from after one."""
    return every(
        r, _tag, f"{_TAG} WHERE t.package_id = ? AND t.name > ? ORDER BY t.name LIMIT ?", (package_id, after, limit)
    )


def find_tags(r: Reader, package_id: int, names: Iterable[str]) -> list[StoredTag]:
    """Those of these tags that an image has."""
    rows = (r.one(f"{_TAG} WHERE t.package_id = ? AND t.name = ?", (package_id, name)) for name in names)
    return [_tag(row) for row in rows if row is not None]


def loose_after(r: Reader, package_id: int, after: str, limit: int) -> list[Named]:
    """Manifests that neither a tag nor another manifest names, by digest, from after one."""
    rows = r.all(f"{_LOOSE} AND m.digest > ? ORDER BY m.digest LIMIT ?", (package_id, after, limit))
    return [Named(*row) for row in rows]


def find_loose(r: Reader, package_id: int, digests: Iterable[str]) -> list[Named]:
    """Those of these manifests that are so."""
    rows = (r.one(f"{_LOOSE} AND m.digest = ?", (package_id, digest)) for digest in digests)
    return [Named(*row) for row in rows if row is not None]


def find_parts(r: Reader, storage_id: int, package_id: int, digests: Iterable[str]) -> set[str]:
    """Those of these digests that are a manifest of the image, or a blob of it to which a manifest refers."""
    return {digest for digest in digests if _is_part(r, storage_id, package_id, digest)}


def manifests_naming(r: Reader, package_id: int, digests: Collection[str], limit: int) -> list[str]:
    """Digests of manifests that refer to one of these, no more than so many."""
    return column(
        r,
        f"""
        SELECT DISTINCT m.digest FROM manifest_ref f JOIN manifest m ON m.id = f.manifest_id
        WHERE f.package_id = ? AND f.digest IN ({placeholders(len(digests))}) ORDER BY m.digest LIMIT ?
        """,
        (package_id, *digests, limit),
    )


def names_of_blob(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests by which an image has the blob of a sha256 digest."""
    sha256 = bytes.fromhex(digest.partition(":")[2])
    row = r.one("SELECT sha512 FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, sha256))
    return [digest] if row is None or row[0] is None else [digest, f"sha512:{row[0].hex()}"]


def tags_of(r: Reader, package_id: int, digest: str, limit: int) -> list[str]:
    """Names of tags that stand for a manifest, or will when it is trusted, no more than so many."""
    return column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? LIMIT ?", (package_id, digest, limit))


def children_of(r: Reader, package_id: int, digest: str) -> list[str]:
    """The digests of the manifests that a manifest lists."""
    return column(
        r,
        """
        SELECT f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id
        WHERE m.package_id = ? AND m.digest = ? AND f.kind = 'manifest'
        """,
        (package_id, digest),
    )


def content_digests(r: Reader, package_id: int) -> tuple[list[str], list[str]]:
    """The digests of an image's manifests, and those of its blobs, which are always sha256."""
    manifests = r.all("SELECT digest FROM manifest WHERE package_id = ? ORDER BY digest", (package_id,))
    blobs = r.all("SELECT sha256 FROM package_blob WHERE package_id = ? ORDER BY sha256", (package_id,))
    return [row[0] for row in manifests], [f"sha256:{row[0].hex()}" for row in blobs]


def _stored(r: Reader, storage_id: int, package_id: int, row: Row) -> StoredManifest:
    references = r.all("SELECT digest, kind FROM manifest_ref WHERE manifest_id = ? ORDER BY digest, kind", (row[0],))
    blobs = []
    for digest in dict.fromkeys(digest for digest, _ in references):
        blob = _find_blob(r, storage_id, package_id, digest)
        if blob is not None:
            blobs.append(blob)
    return StoredManifest(
        digest=row[1],
        sha256=row[2].hex(),
        media_type=row[3],
        size=row[4],
        locator=row[5],
        subject=row[6],
        artifact_type=row[7],
        annotations=load(row[8]),
        evidence=bool(row[10]),
        references=tuple((digest, kind) for digest, kind in references),
        blobs=tuple(blobs),
        created_at=at(row[9]),
        waiting=row[11] is not None,
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
    shown = None if row[1] is None else Named(row[1], row[2], row[3])
    return StoredTag(name=row[0], manifest=shown, updated_at=at(row[4]), actor=row[5], waiting=row[6])
