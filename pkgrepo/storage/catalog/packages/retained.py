"""
What retention reads of versions: ages, tags, last downloads and sizes, of many packages with few statements.

A preview reads every version of a repository, so these return little more than the columns themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import batches, placeholders

BATCH: Final = 500  # ids in one statement


class PackageName(NamedTuple):
    """A package with its catalog key."""

    id: int
    key: str
    name: str


class VersionAge(NamedTuple):
    """A version, as far as retention decides by it."""

    package_id: int
    id: int
    key: str
    text: str
    published_ms: int
    state: str


def page_of_names(r: Reader, repository_id: int, after: str, limit: int) -> list[PackageName]:
    """A page of packages after the key ``after``, ordered by key."""
    rows = r.all(
        "SELECT id, key, name FROM package WHERE repository_id = ? AND key > ? ORDER BY key LIMIT ?",
        (repository_id, after, limit),
    )
    return [PackageName(*row) for row in rows]


def ages(r: Reader, package_ids: Sequence[int]) -> dict[int, list[VersionAge]]:
    """The versions of packages by the id of the package, in the format's order."""
    found: dict[int, list[VersionAge]] = {}
    for some in batches(package_ids, BATCH):
        sql = f"""
            SELECT package_id, id, key, text, published_at, state FROM version
            WHERE package_id IN ({placeholders(len(some))}) ORDER BY package_id, sort, key
        """
        for age in map(VersionAge._make, r.all(sql, some)):
            found.setdefault(age.package_id, []).append(age)
    return found


def tags_by_version(r: Reader, package_ids: Sequence[int]) -> dict[int, list[str]]:
    """The names of the tags that point to versions of packages, by the id of the version."""
    found: dict[int, list[str]] = {}
    for some in batches(package_ids, BATCH):
        sql = f"""
            SELECT version_id, name FROM tag
            WHERE package_id IN ({placeholders(len(some))}) AND version_id IS NOT NULL ORDER BY package_id, name
        """
        for version_id, name in r.all(sql, some):
            found.setdefault(version_id, []).append(name)
    return found


def downloads_of_versions(r: Reader, package_ids: Sequence[int], since_day: int) -> dict[int, int]:
    """The last day since ``since_day`` on which a file of a version was downloaded, by the id of the version."""
    found: dict[int, int] = {}
    for some in batches(package_ids, BATCH):
        sql = f"""
            SELECT f.version_id, MAX(d.day) FROM file f CROSS JOIN download_count d
            WHERE f.package_id IN ({placeholders(len(some))}) AND f.version_id IS NOT NULL
                AND d.kind = 'file' AND d.item_id = f.id AND d.day >= ?
            GROUP BY f.version_id
        """  # a join would begin with all counts of files, as SQLite plans it
        found.update(r.all(sql, (*some, since_day)))
    return found


def fetches_of_versions(r: Reader, package_ids: Sequence[int]) -> dict[int, int]:
    """When a file of each cached version was last fetched (ms), by the id of the version."""
    found: dict[int, int] = {}
    for some in batches(package_ids, BATCH):
        sql = f"""
            SELECT version_id, MAX(created_at) FROM file
            WHERE package_id IN ({placeholders(len(some))}) AND version_id IS NOT NULL GROUP BY version_id
        """
        found.update(r.all(sql, some))
    return found


def downloads_of(r: Reader, kind: str, ids: Sequence[int], since_day: int) -> dict[int, int]:
    """The last day since ``since_day`` on which a file or a manifest (``kind``) was downloaded, by its id."""
    found: dict[int, int] = {}
    for some in batches(ids, BATCH):
        sql = f"""
            SELECT item_id, MAX(day) FROM download_count
            WHERE kind = ? AND item_id IN ({placeholders(len(some))}) AND day >= ? GROUP BY item_id
        """
        found.update(r.all(sql, (kind, *some, since_day)))
    return found


def sizes_of_versions(r: Reader, version_ids: Sequence[int]) -> dict[int, int]:
    """The bytes of the files of versions, by the id of the version."""
    found: dict[int, int] = {}
    for some in batches(version_ids, BATCH):
        of = placeholders(len(some))
        sql = f"SELECT version_id, SUM(size) FROM file WHERE version_id IN ({of}) GROUP BY version_id"
        found.update((version_id, int(size)) for version_id, size in r.all(sql, some))
    return found
