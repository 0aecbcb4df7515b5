"""Statistics of a repository, computed by queries on each call. They read many rows: run them in a reader thread."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.blobs.gc import REFERENCED
from pkgrepo.storage.catalog.blobs.uploads import unfinished_uploads
from pkgrepo.storage.catalog.imported_downloads import imported_downloads
from pkgrepo.storage.catalog.packages.events import last_activity
from pkgrepo.storage.catalog.rows import number, only_row
from pkgrepo.storage.catalog.usage_counts import DAY_MS

TOP = 10  # packages in the list of those with the most tags or versions


@frozen
class TopPackage:
    """One of the packages with the most tags or versions; ``size`` in bytes."""

    name: str
    tags: int
    versions: int
    downloads: int
    size: int


@frozen
class Figures:
    """
    The statistics of a repository; sizes in bytes.

    ``stored`` counts each blob once, ``logical`` once for each reference; ``shared`` are the blobs that other
    repositories refer to as well. ``unreferenced`` is what garbage collection may free later: blobs of the storage
    without any reference, and blobs of images without a manifest that refers to them. ``downloads`` are the counts of
    all time, also before an import, of today (UTC), of 7 days and of 30 days; ``uploads`` the counts of all time and of
    the last 24 hours.
    """

    packages: int
    versions: int
    files: int
    tags: int
    manifests: int
    blobs: int
    stored: int
    logical: int
    shared: int
    unreferenced: int
    pending_uploads: int
    last_activity: datetime | None
    downloads: tuple[int, int, int, int]
    uploads: tuple[int, int]
    top: tuple[TopPackage, ...]


# The sha256 of blobs that a repository refers to: of its files, and the distinct ones of all else.
_OF_FILES = "SELECT sha256 FROM file WHERE repository_id = ?"
_OF_OTHERS = """
    SELECT sha256 FROM manifest WHERE repository_id = ?
    UNION SELECT x.sha256 FROM package_blob x JOIN package p ON p.id = x.package_id
    WHERE p.repository_id = ?
    UNION SELECT k.sha256 FROM trash_blob k JOIN trash t ON t.id = k.trash_id WHERE t.repository_id = ?
"""
# Few digests are in several rows, which the order of the index tells without a look-up for each.
_OF_SEVERAL_FILES = "SELECT sha256 FROM file GROUP BY sha256 HAVING COUNT(*) > 1"
_OF_BOTH = """
    SELECT sha256 FROM (SELECT sha256 FROM file INTERSECT SELECT sha256 FROM package_blob) blobs
    UNION SELECT sha256 FROM (SELECT sha256 FROM file INTERSECT SELECT sha256 FROM manifest) manifests
"""


def repository_figures(r: Reader, storage_id: int, repository_id: int, now_ms: int) -> Figures:
    """The current statistics of a repository."""
    tags = _count(r, "tag t JOIN package p ON p.id = t.package_id WHERE p.repository_id = ?", repository_id)
    blobs, stored, shared = _blobs(r, storage_id, repository_id)
    today = now_ms // DAY_MS
    return Figures(
        packages=_count(r, "package WHERE repository_id = ?", repository_id),
        versions=_count(r, "version v JOIN package p ON p.id = v.package_id WHERE p.repository_id = ?", repository_id),
        files=_count(r, "file WHERE repository_id = ?", repository_id),
        tags=tags,
        manifests=_count(r, "manifest WHERE repository_id = ?", repository_id),
        blobs=blobs,
        stored=stored,
        logical=number(r, "SELECT bytes_used FROM repository WHERE id = ?", (repository_id,)),
        shared=shared,
        unreferenced=_unreferenced(r, storage_id) + _size_without_manifest(r, storage_id, repository_id),
        pending_uploads=unfinished_uploads(r, repository_id, now_ms)[0],
        last_activity=last_activity(r, repository_id),
        downloads=(
            _downloads(r, repository_id, 0) + imported_downloads(r, repository_id),
            _downloads(r, repository_id, today),
            _downloads(r, repository_id, today - 6),
            _downloads(r, repository_id, today - 29),
        ),
        uploads=_uploads(r, repository_id, now_ms - DAY_MS),
        top=_top(r, repository_id),
    )


def _blobs(r: Reader, storage_id: int, repository_id: int) -> tuple[int, int, int]:
    """The number of blobs, their size, and that of those to which other repositories of the storage refer as well."""
    files, size = only_row(
        r, "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM file WHERE repository_id = ?", (repository_id,)
    )
    repeats, repeated = only_row(
        r,
        f"""
        SELECT COALESCE(SUM(count - 1), 0), COALESCE(SUM((count - 1) * size), 0) FROM (
            SELECT COUNT(*) AS count, MAX(f.size) AS size FROM ({_OF_SEVERAL_FILES}) s CROSS JOIN file f
            WHERE f.sha256 = s.sha256 AND f.repository_id = ? GROUP BY f.sha256
        ) counted
        """,
        (repository_id,),
    )
    others, other_size = only_row(
        r,
        f"""
        SELECT COUNT(*), COALESCE(SUM(b.size), 0) FROM ({_OF_OTHERS}) o CROSS JOIN blob b
        WHERE b.storage_id = ? AND b.sha256 = o.sha256
            AND NOT EXISTS (SELECT 1 FROM file f WHERE f.sha256 = b.sha256 AND f.repository_id = ?)
        """,
        (*[repository_id] * 3, storage_id, repository_id),
    )
    shared = number(
        r,
        f"""
        SELECT COALESCE(SUM(b.size), 0)
        FROM ({_OF_SEVERAL_FILES} UNION {_OF_BOTH} UNION {_OF_OTHERS}) s CROSS JOIN blob b
        WHERE b.storage_id = ? AND b.sha256 = s.sha256 AND b.sha256 IN ({_OF_FILES} UNION {_OF_OTHERS}) AND (
            EXISTS (SELECT 1 FROM file f WHERE f.sha256 = b.sha256 AND f.repository_id <> ? AND f.storage_id = ?)
            OR EXISTS (SELECT 1 FROM manifest m WHERE m.sha256 = b.sha256 AND m.repository_id <> ?)
            OR EXISTS (SELECT 1 FROM package_blob x JOIN package p ON p.id = x.package_id
                       WHERE x.sha256 = b.sha256 AND p.repository_id <> ?)
        )
        """,
        (*[repository_id] * 3, storage_id, *[repository_id] * 5, storage_id, repository_id, repository_id),
    )
    return files - repeats + others, size - repeated + other_size, shared


def _unreferenced(r: Reader, storage_id: int) -> int:
    """
    The size in bytes of the live blobs of a storage that nothing refers to.

    The digests of all blobs, files and images are compared first, as their indexes have them in one order: that takes a
    tenth of the time of a look-up for each blob. It leaves what no storage refers to, and what others have as well.
    """
    return number(
        r,
        f"""
        WITH loose AS MATERIALIZED (
            SELECT sha256 FROM (
                SELECT sha256 FROM blob WHERE storage_id = ?
                EXCEPT SELECT sha256 FROM file EXCEPT SELECT sha256 FROM package_blob EXCEPT SELECT sha256 FROM manifest
            ) own
            UNION SELECT sha256 FROM (
                SELECT sha256 FROM blob WHERE storage_id = ? INTERSECT SELECT sha256 FROM blob WHERE storage_id <> ?
            ) others
        )
        SELECT COALESCE(SUM(b.size), 0) FROM loose l CROSS JOIN blob b
        WHERE b.storage_id = ? AND b.sha256 = l.sha256 AND b.state = 'live' AND NOT {REFERENCED}
        """,
        (storage_id, storage_id, storage_id, storage_id),
    )


def _size_without_manifest(r: Reader, storage_id: int, repository_id: int) -> int:
    """The size in bytes of the blobs of images that no manifest of the same image refers to."""
    return number(
        r,
        """
        SELECT COALESCE(SUM(b.size), 0) FROM package p CROSS JOIN package_blob x CROSS JOIN blob b
        WHERE p.repository_id = ? AND x.package_id = p.id AND b.storage_id = ? AND b.sha256 = x.sha256 AND NOT EXISTS (
            SELECT 1 FROM manifest_ref y WHERE y.package_id = x.package_id
            AND y.digest IN ('sha256:' || lower(hex(x.sha256)), 'sha512:' || lower(hex(x.sha512)))
        )
        """,
        (repository_id, storage_id),
    )


def _downloads(r: Reader, repository_id: int, from_day: int) -> int:
    sql = "SELECT COALESCE(SUM(count), 0) FROM repository_download WHERE repository_id = ? AND day >= ?"
    return number(r, sql, (repository_id, from_day))


def _uploads(r: Reader, repository_id: int, since_ms: int) -> tuple[int, int]:
    """The number of published files, and of those since a time."""
    return only_row(
        r,
        """
        SELECT COUNT(*), COALESCE(SUM(CASE WHEN at >= ? THEN 1 ELSE 0 END), 0)
        FROM event WHERE repository_id = ? AND kind = 'published'
        """,
        (since_ms, repository_id),
    )


def _top(r: Reader, repository_id: int) -> tuple[TopPackage, ...]:
    rows = r.all(
        """
        WITH counted AS MATERIALIZED (
            SELECT p.id, p.key, p.name, p.downloads,
                (SELECT COUNT(*) FROM tag t WHERE t.package_id = p.id) AS tags,
                (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id) AS versions
            FROM package p WHERE p.repository_id = ?
        )
        SELECT name, tags, versions, downloads, id FROM counted
        ORDER BY CASE WHEN tags > versions THEN tags ELSE versions END DESC, key LIMIT ?
        """,
        (repository_id, TOP),
    )
    return tuple(
        TopPackage(
            name=name,
            tags=tags,
            versions=versions,
            downloads=downloads,
            size=_size(r, id_),
        )
        for name, tags, versions, downloads, id_ in rows
    )


def _size(r: Reader, package_id: int) -> int:
    sql = """
        SELECT (SELECT COALESCE(SUM(size), 0) FROM file WHERE package_id = ?)
            + (SELECT COALESCE(SUM(size), 0) FROM manifest WHERE package_id = ?)
            + (SELECT COALESCE(SUM(b.size), 0) FROM package_blob x
               CROSS JOIN package p CROSS JOIN repository r CROSS JOIN blob b
               WHERE x.package_id = ? AND p.id = x.package_id AND r.id = p.repository_id
                   AND b.storage_id = r.storage_id AND b.sha256 = x.sha256)
    """
    return number(r, sql, (package_id, package_id, package_id))


def _count(r: Reader, rest: str, key: int) -> int:
    return number(r, f"SELECT COUNT(*) FROM {rest}", (key,))
