"""Everything that an image consists of, for whoever copies or describes it as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Package

from .columns import at, load
from .packages import find_package


@frozen
class StoredManifest:
    """A manifest; ``references`` are (digest, kind), ``locator`` is empty when its bytes were found damaged."""

    digest: str
    sha256: str
    media_type: str
    size: int
    locator: str
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    evidence: bool
    references: tuple[tuple[str, str], ...]
    created_at: datetime


@frozen
class StoredBlob:
    """A blob under the name by which a manifest refers to it; ``locator`` is empty when the bytes are damaged."""

    digest: str
    sha256: str
    size: int
    locator: str


@frozen
class StoredTag:
    """A tag with the digest of the manifest that readers get by it."""

    name: str
    digest: str
    updated_at: datetime
    actor: str


@frozen
class ImageContents:
    """An image: manifests by digest, the blobs that they refer to by digest, and tags by name, each in order."""

    package: Package
    manifests: tuple[StoredManifest, ...]
    blobs: tuple[StoredBlob, ...]
    tags: tuple[StoredTag, ...]


def read_image(r: Reader, repository_id: int, package_key: str) -> ImageContents | None:
    """An image as it is now, or None. Reads every row of it: for a reader thread."""
    package = find_package(r, repository_id, package_key)
    if package is None:
        return None
    references: dict[int, list[tuple[str, str]]] = {}
    for manifest_id, digest, kind in r.all(
        "SELECT manifest_id, digest, kind FROM manifest_ref WHERE package_id = ? ORDER BY digest, kind", (package.id,)
    ):
        references.setdefault(manifest_id, []).append((digest, kind))
    manifests = tuple(
        StoredManifest(
            digest=row[1],
            sha256=row[2].hex(),
            media_type=row[3],
            size=row[4],
            locator=row[5],
            subject=row[6],
            artifact_type=row[7],
            annotations=load(row[8]),
            evidence=bool(row[10]),
            references=tuple(references.get(row[0], ())),
            created_at=at(row[9]),
        )
        for row in r.all(
            """
            SELECT m.id, m.digest, m.sha256, m.media_type, m.size,
                CASE b.state WHEN 'suspect' THEN '' ELSE b.locator END,
                m.subject, m.artifact_type, m.annotations, m.created_at, m.evidence
            FROM manifest m JOIN repository r ON r.id = m.repository_id
            JOIN blob b ON b.storage_id = r.storage_id AND b.sha256 = m.sha256
            WHERE m.package_id = ? ORDER BY m.digest
            """,
            (package.id,),
        )
    )
    tags = r.all(
        """
        SELECT name, digest, updated_at, actor FROM (
            SELECT name, CASE WHEN expires_at IS NULL THEN digest ELSE served END AS digest, updated_at, actor
            FROM tag WHERE package_id = ?
        ) WHERE digest IS NOT NULL ORDER BY name
        """,
        (package.id,),
    )
    return ImageContents(
        package=package,
        manifests=manifests,
        blobs=_blobs(r, package.id, manifests),
        tags=tuple(StoredTag(row[0], row[1], at(row[2]), row[3]) for row in tags),
    )


def content_digests(r: Reader, package_id: int) -> tuple[list[str], list[str]]:
    """The digests of an image's manifests, and those of its blobs, which are always sha256."""
    manifests = r.all("SELECT digest FROM manifest WHERE package_id = ? ORDER BY digest", (package_id,))
    blobs = r.all("SELECT sha256 FROM package_blob WHERE package_id = ? ORDER BY sha256", (package_id,))
    return [row[0] for row in manifests], [f"sha256:{row[0].hex()}" for row in blobs]


def _blobs(r: Reader, package_id: int, manifests: tuple[StoredManifest, ...]) -> tuple[StoredBlob, ...]:
    needed = {digest for each in manifests for digest, _ in each.references}
    found = []
    for sha256, sha512, size, locator in r.all(
        """
        SELECT x.sha256, x.sha512, b.size, CASE b.state WHEN 'suspect' THEN '' ELSE b.locator END
        FROM package_blob x JOIN package p ON p.id = x.package_id JOIN repository r ON r.id = p.repository_id
        JOIN blob b ON b.storage_id = r.storage_id AND b.sha256 = x.sha256
        WHERE x.package_id = ?
        """,
        (package_id,),
    ):
        names = [f"sha256:{sha256.hex()}"] + ([f"sha512:{sha512.hex()}"] if sha512 is not None else [])
        found += [StoredBlob(name, sha256.hex(), size, locator) for name in names if name in needed]
    return tuple(sorted(found, key=lambda each: each.digest))
