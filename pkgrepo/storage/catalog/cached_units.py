"""
The units of what proxy repositories keep, and how large they are.

A unit is what is removed from a cache as a whole:

========  =========================================  ============================================================
kind      name                                       used last
========  =========================================  ============================================================
version   the key of a version of a package          when a file of it was fetched, or the end of the day (UTC)
                                                     of the last download of one
manifest  the digest of a manifest of an image       the same; pulls count as downloads
document  the key of a question to upstreams         when an upstream last confirmed the response, or the end of the day
                                                     of the last download of the package, which counts while
                                                     upstreams fail
========  =========================================  ============================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

from attrs import frozen

from pkgrepo.interfaces import Reader, Row
from pkgrepo.storage.catalog.rows import LAST_CHARACTER, column, every, number

Kind = Literal["version", "manifest", "document"]
Position = tuple[int, str, str, str]
START: Final[Position] = (-1, "", "", "")
_UNITS = """
    SELECT kind, package, name, files, size, fetched, used FROM (
        SELECT 'version' AS kind, f.package AS package, f.name AS name, COUNT(*) AS files,
            CAST(SUM(f.size) AS BIGINT) AS size, MAX(f.created_at) AS fetched,
            MAX(CASE WHEN f.created_at > f.downloaded THEN f.created_at ELSE f.downloaded END) AS used
        FROM (
            SELECT p.key AS package, v.key AS name, x.version_id, x.size, x.created_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(d.day) FROM download_count d WHERE d.kind = 'file' AND d.item_id = x.id), -1
            )) AS downloaded
            FROM package p JOIN version v ON v.package_id = p.id JOIN file x ON x.version_id = v.id
            WHERE p.repository_id = ? AND p.key BETWEEN ? AND ?
        ) f GROUP BY f.version_id, f.package, f.name
        UNION ALL
        SELECT 'manifest', m.package, m.digest, 1, m.size, m.created_at,
            CASE WHEN m.created_at > m.downloaded THEN m.created_at ELSE m.downloaded END
        FROM (
            SELECT p.key AS package, x.digest, x.size, x.created_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(d.day) FROM download_count d WHERE d.kind = 'manifest' AND d.item_id = x.id), -1
            )) AS downloaded
            FROM package p JOIN manifest x ON x.package_id = p.id
            WHERE p.repository_id = ? AND p.key BETWEEN ? AND ?
        ) m
        UNION ALL
        SELECT 'document', x.package_key, x.key, 1, x.size, x.checked_at,
            CASE WHEN x.checked_at > x.downloaded THEN x.checked_at ELSE x.downloaded END
        FROM (
            SELECT d.package_key, d.key, COALESCE(b.size, 0) AS size, d.checked_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(c.day) FROM package p JOIN package_download c ON c.package_id = p.id
                 WHERE p.repository_id = d.repository_id AND p.key = d.package_key), -1
            )) AS downloaded
            FROM upstream_document d LEFT JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256
            WHERE d.repository_id = ? AND d.package_key BETWEEN ? AND ?
        ) x
    ) u
"""


@frozen
class CachedUnit:
    """
    One unit; ``size`` in bytes, of a manifest without its blobs. Times are in milliseconds since the epoch.

    ``fetched_ms`` is when its content was last fetched, of a document when it was last confirmed.
    """

    kind: Kind
    package_key: str
    name: str
    files: int
    size: int
    fetched_ms: int
    used_ms: int

    @property
    def position(self) -> Position:
        """The place in the order from those that were not used for longest."""
        return self.used_ms, self.kind, self.package_key, self.name


def units_of_package(r: Reader, repository_id: int, package_key: str) -> list[CachedUnit]:
    """All units of a package, those that were not used for longest first."""
    place = (repository_id, package_key, package_key)
    return every(r, _unit, f"{_UNITS} ORDER BY used, kind, name", place * 3)


def oldest_units(r: Reader, repository_id: int, *, after: Position = START, limit: int) -> list[CachedUnit]:
    """
    A page of the units of a repository, those that were not used for longest first.

    Reads what the repository keeps as a whole: call it on a reader thread.
    """
    place = (repository_id, "", LAST_CHARACTER)
    sql = f"{_UNITS} WHERE (used, kind, package, name) > (?, ?, ?, ?) ORDER BY used, kind, package, name LIMIT ?"
    return every(r, _unit, sql, (*place * 3, *after, limit))


def cached_packages(r: Reader, repository_id: int, *, after: str, limit: int) -> list[str]:
    """A page of the keys of packages of which anything is kept, after a key."""
    return column(
        r,
        """
        SELECT key FROM (
            SELECT key FROM package WHERE repository_id = ? AND key > ? ORDER BY key LIMIT ?
        ) p UNION SELECT package_key FROM (
            SELECT DISTINCT package_key FROM upstream_document
            WHERE repository_id = ? AND package_key > ? ORDER BY package_key LIMIT ?
        ) d ORDER BY 1 LIMIT ?
        """,
        (repository_id, after, limit, repository_id, after, limit, limit),
    )


def cached_size(r: Reader, repository_id: int) -> int:
    """The bytes of everything that a repository keeps. Reads all documents: call it on a reader thread."""
    files = number(r, "SELECT bytes_used FROM repository WHERE id = ?", (repository_id,))
    documents = number(
        r,
        """
        SELECT SUM(b.size) FROM upstream_document d JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256
        WHERE d.repository_id = ?
        """,
        (repository_id,),
    )
    return files + documents


def sizes_with_blobs(
    r: Reader, storage_id: int, repository_id: int, package_key: str, digests: Sequence[str]
) -> list[tuple[int, int]]:
    """
    For manifests that are removed from an image in this order, the objects and bytes that the image then loses with it.

    These are the manifest, and the blobs that no remaining manifest refers to.
    """
    package_id = number(r, "SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, package_key))
    blobs: dict[str, tuple[bytes, int]] = {}
    for sha256, sha512, size in r.all(
        """
        SELECT x.sha256, x.sha512, b.size FROM package_blob x CROSS JOIN blob b
        WHERE x.package_id = ? AND b.storage_id = ? AND b.sha256 = x.sha256
        """,
        (package_id, storage_id),
    ):
        blobs[f"sha256:{sha256.hex()}"] = sha256, size
        if sha512 is not None:
            blobs[f"sha512:{sha512.hex()}"] = sha256, size
    sizes: dict[str, int] = dict(r.all("SELECT digest, size FROM manifest WHERE package_id = ?", (package_id,)))
    needed: dict[str, dict[bytes, int]] = {}
    for digest, named in r.all(
        "SELECT m.digest, f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id WHERE m.package_id = ?",
        (package_id,),
    ):
        if named in blobs:
            sha256, size = blobs[named]
            needed.setdefault(digest, {})[sha256] = size
    references = Counter(sha256 for each in needed.values() for sha256 in each)
    found = []
    for digest in digests:
        files, total = 1, sizes.get(digest, 0)
        for sha256, size in needed.pop(digest, {}).items():
            references[sha256] -= 1
            if not references[sha256]:
                files, total = files + 1, total + size
        found.append((files, total))
    return found


def _unit(row: Row) -> CachedUnit:
    kind, key, name, *counts = row
    return CachedUnit(kind, key, name, *map(int, counts))
