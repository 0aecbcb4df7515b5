"""What rules ask about a manifest or blob of an image: the manifests around it, their tags, and how old they are."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import batches, column, placeholders, scalar

from .first_sights import Age, find_age

MOST: int = 1000  # manifests that refer to one blob, which are looked at


@frozen
class Relations:
    """
    A manifest with its ``tags``, the manifests that it lists, and those that refer to it (``within``).

    Of a blob only the last are there. ``known`` tells whether it is a manifest that is kept.
    """

    digest: str
    tags: tuple[str, ...]
    lists: tuple[str, ...]
    within: tuple[str, ...]
    age: Age
    known: bool


def find_relations(r: Reader, repository_id: int, image: str, digest: str) -> Relations:
    """The relations of a manifest or blob of an image."""
    package_id = scalar(r, "SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, image)) or 0
    at = (package_id, digest)
    tags = column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name", at)
    tags += column(r, "SELECT name FROM tag WHERE package_id = ? AND served = ? ORDER BY name", at)
    lists = column(
        r,
        "SELECT x.digest FROM manifest m JOIN manifest_ref x ON x.manifest_id = m.id "
        "WHERE m.package_id = ? AND m.digest = ? AND x.kind = 'manifest' ORDER BY x.digest",
        at,
    )
    within = column(
        r,
        "SELECT m.digest FROM manifest_ref x JOIN manifest m ON m.id = x.manifest_id "
        "WHERE x.package_id = ? AND x.digest = ? ORDER BY m.digest LIMIT ?",
        (*at, MOST),
    )
    known = scalar(r, "SELECT 1 FROM manifest WHERE package_id = ? AND digest = ?", at) is not None
    age = find_age(r, repository_id, image, digest)
    return Relations(digest, tuple(dict.fromkeys(tags)), tuple(lists), tuple(within), age, known)


def manifests_of_blob(r: Reader, repository_ids: Sequence[int], digest: str) -> list[bytes]:
    """The sha256 of the manifests in some repositories of which a blob is a layer or the configuration."""
    found: set[bytes] = set()
    for some in batches(repository_ids):
        sql = f"""
            SELECT m.sha256 FROM package p JOIN manifest_ref x ON x.package_id = p.id AND x.digest = ?
            JOIN manifest m ON m.id = x.manifest_id
            WHERE p.repository_id IN ({placeholders(len(some))}) AND x.kind <> 'manifest'
        """
        found.update(column(r, sql, (digest, *some)))
    return sorted(found)


def former_digests(r: Reader, repository_id: int, image: str, tag: str, limit: int) -> list[str]:
    """The digests that a tag pointed to, the latest first."""
    return column(
        r,
        "SELECT digest FROM first_sight WHERE repository_id = ? AND package_key = ? AND tag = ? "
        "ORDER BY moved_at DESC, digest LIMIT ?",
        (repository_id, image, tag, limit),
    )
