"""What retention reads of an image: the ages of its tags and manifests."""

from __future__ import annotations

from typing import NamedTuple

from pkgrepo.interfaces import Reader


class TagAge(NamedTuple):
    """A tag, and the digest that it points to."""

    name: str
    digest: str
    updated_ms: int


class ManifestAge(NamedTuple):
    """A manifest; ``is_top`` if no other manifest of the image lists it, ``tagged`` if a tag points to it."""

    id: int
    digest: str
    subject: str | None
    created_ms: int
    touched_ms: int
    is_top: bool
    tagged: bool


def tag_ages(r: Reader, package_id: int) -> list[TagAge]:
    """The tags of an image that point to a manifest and are not in quarantine, by time."""
    rows = r.all(
        """
        SELECT name, digest, updated_at FROM tag
        WHERE package_id = ? AND digest IS NOT NULL AND expires_at IS NULL ORDER BY updated_at, name
        """,
        (package_id,),
    )
    return [TagAge(*row) for row in rows]


def manifest_ages(r: Reader, package_id: int) -> dict[str, ManifestAge]:
    """The manifests of an image by digest."""
    listed = r.all("SELECT DISTINCT digest FROM manifest_ref WHERE package_id = ? AND kind = 'manifest'", (package_id,))
    children = {digest for (digest,) in listed}
    tagged: set[str | None] = set()
    for digest, served in r.all("SELECT digest, served FROM tag WHERE package_id = ?", (package_id,)):
        tagged |= {digest, served}
    rows = r.all(
        "SELECT id, digest, subject, created_at, touched_at FROM manifest WHERE package_id = ? ORDER BY id",
        (package_id,),
    )
    return {
        digest: ManifestAge(id_, digest, subject, created_ms, touched_ms, digest not in children, digest in tagged)
        for id_, digest, subject, created_ms, touched_ms in rows
    }
