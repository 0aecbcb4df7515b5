"""Summaries of packages and versions for lists and search: number of versions and files, size, downloads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Value
from pkgrepo.model import Origin, VersionState
from pkgrepo.storage.catalog.clauses import non_null, optional_conditions, placeholders
from pkgrepo.storage.catalog.columns import LIKE, at, like, load
from pkgrepo.storage.catalog.rows import every, find, number


@frozen
class PackageSummary:
    """
    A package with its counters; ``size`` is the sum of its files in bytes.

    ``latest`` is the version that the format set as the latest, else the highest live version. ``withdrawn`` is the
    number of yanked versions. For an image, ``versions`` counts tags, ``files`` counts manifests and blobs, and
    ``latest`` is the tag "latest", else the tag that was set last. ``route`` is the upstream route that the file came
    from that was fetched last, at ``fetched_at``; both are None if no upstream was asked for it.
    """

    key: str
    name: str
    latest: str | None
    versions: int
    withdrawn: int
    deprecated: int
    files: int
    size: int
    downloads: int
    created_at: datetime
    updated_at: datetime
    route: str | None
    fetched_at: datetime | None


@frozen
class VersionSummary:
    """
    A version with the number of its files; ``size`` is their sum in bytes.

    ``route`` and ``fetched_at`` are those of the file that was fetched last from an upstream, None without any.
    """

    key: str
    text: str
    sort: bytes
    state: VersionState
    reason: str
    published_at: datetime
    publisher: str
    files: int
    size: int
    route: str | None
    fetched_at: datetime | None


_CHUNK = 500  # repositories in one query

_PACKAGE = """
    SELECT p.key, p.name,
           COALESCE(p.latest, (SELECT v.text FROM version v WHERE v.package_id = p.id AND v.state = 'live'
                               ORDER BY v.sort DESC, v.key DESC LIMIT 1),
                    (SELECT t.name FROM tag t WHERE t.package_id = p.id AND t.digest IS NOT NULL
                     AND (t.expires_at IS NULL OR t.served IS NOT NULL)
                     ORDER BY CASE t.name WHEN 'latest' THEN 0 ELSE 1 END, t.updated_at DESC, t.name LIMIT 1)),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id)
           + (SELECT COUNT(*) FROM tag t WHERE t.package_id = p.id AND t.digest IS NOT NULL),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id AND v.state = 'yanked'),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id AND v.state = 'deprecated'),
           (SELECT COUNT(*) FROM file f WHERE f.package_id = p.id)
           + (SELECT COUNT(*) FROM manifest m WHERE m.package_id = p.id)
           + (SELECT COUNT(*) FROM package_blob x WHERE x.package_id = p.id),
           (SELECT COALESCE(SUM(f.size), 0) FROM file f WHERE f.package_id = p.id)
           + (SELECT COALESCE(SUM(m.size), 0) FROM manifest m WHERE m.package_id = p.id)
           + (SELECT COALESCE(SUM(b.size), 0) FROM package_blob x JOIN repository r ON r.id = p.repository_id
              JOIN blob b ON b.storage_id = r.storage_id AND b.sha256 = x.sha256 WHERE x.package_id = p.id),
           (SELECT COALESCE(SUM(d.count), 0) FROM download_count d WHERE d.package_id = p.id),
           p.created_at, p.updated_at,
           (SELECT f.attrs FROM file f WHERE f.package_id = p.id AND f.attrs LIKE '%"upstream":%'
            ORDER BY f.created_at DESC, f.id DESC LIMIT 1),
           (SELECT d.route FROM upstream_document d WHERE d.repository_id = p.repository_id AND d.package_key = p.key
            AND d.route <> '' ORDER BY d.fetched_at DESC, d.id DESC LIMIT 1),
           (SELECT MAX(d.fetched_at) FROM upstream_document d
            WHERE d.repository_id = p.repository_id AND d.package_key = p.key AND d.route <> '')
    FROM package p
"""
_FILTERS = ("p.repository_id = ?", "p.key > ?", f"p.key {LIKE}")

_VERSION = """
    SELECT v.key, v.text, v.sort, v.state, v.reason, v.published_at, v.publisher,
           (SELECT COUNT(*) FROM file f WHERE f.version_id = v.id),
           (SELECT COALESCE(SUM(f.size), 0) FROM file f WHERE f.version_id = v.id),
           (SELECT f.attrs FROM file f WHERE f.version_id = v.id AND f.attrs LIKE '%"upstream":%'
            ORDER BY f.created_at DESC, f.id DESC LIMIT 1)
    FROM version v
"""


def find_package_summary(r: Reader, repository_id: int, key: str) -> PackageSummary | None:
    """The summary of the package with this key, or None."""
    return find(r, _package, f"{_PACKAGE} WHERE p.repository_id = ? AND p.key = ?", (repository_id, key))


def list_package_summaries(
    r: Reader, repository_id: int, *, after: str = "", skip: int = 0, limit: int = 50, search: str = ""
) -> list[PackageSummary]:
    """
    A page of summaries after the key ``after``, ordered by key; with ``search``, of the packages whose key contains it.

    ``skip`` is an offset, for callers that address pages by number; the skipped rows are read as well.
    """
    values = (repository_id, after, like(search.lower()) if search else None)
    return every(
        r,
        _package,
        f"{_PACKAGE} WHERE {optional_conditions(_FILTERS, values)} ORDER BY p.key LIMIT ? OFFSET ?",
        (*non_null(values), limit, skip),
    )


def count_packages(r: Reader, repository_id: int, search: str = "") -> int:
    """The number of packages that ``list_package_summaries`` returns over all pages."""
    values = (repository_id, None, like(search.lower()) if search else None)
    return number(r, f"SELECT COUNT(*) FROM package p WHERE {optional_conditions(_FILTERS, values)}", non_null(values))


def list_version_summaries(
    r: Reader, package_id: int, *, before: tuple[bytes, str] | None = None, limit: int = 50
) -> list[VersionSummary]:
    """A page of versions, highest first; it starts below the version with the (sort, key) in ``before``."""
    below = "" if before is None else "AND (v.sort, v.key) < (?, ?)"
    rows = r.all(
        f"{_VERSION} WHERE v.package_id = ? {below} ORDER BY v.sort DESC, v.key DESC LIMIT ?",
        (package_id, *(before or ()), limit),
    )
    return [
        VersionSummary(
            row[0], row[1], row[2], VersionState(row[3]), row[4], at(row[5]), row[6], row[7], row[8], *_source(row[9])
        )
        for row in rows
    ]


def search_packages(
    r: Reader, repository_ids: Sequence[int], words: Sequence[str], limit: int
) -> list[tuple[int, PackageSummary]]:
    """
    The packages of some repositories whose key contains every word, as pairs (repository id, summary).

    Order: the key that equals the first word, then keys that start with it, then the others; each group by key.
    """
    found: list[tuple[int, int, str]] = []
    for start in range(0, len(repository_ids), _CHUNK):
        chunk = repository_ids[start : start + _CHUNK]
        first = words[0] if words else ""
        parameters: list[Value] = [first, like(first)[1:], *chunk, *map(like, words), limit]
        found += [(row[0], row[1], row[2]) for row in r.all(_search(len(chunk), len(words)), parameters)]
    found.sort(key=lambda each: (each[0], each[2], each[1]))
    summaries = [(owner, find_package_summary(r, owner, key)) for _, owner, key in found[:limit]]
    return [(owner, summary) for owner, summary in summaries if summary is not None]


def package_and_version_of_file(r: Reader, file_id: int) -> tuple[str, str] | None:
    """The keys of the package and of the version of a file; None if the file belongs to no version."""
    row = r.one(
        """
        SELECT p.key, v.key FROM file f
        JOIN version v ON v.id = f.version_id JOIN package p ON p.id = v.package_id
        WHERE f.id = ?
        """,
        (file_id,),
    )
    return None if row is None else (row[0], row[1])


def _search(repositories: int, words: int) -> str:
    return f"""
        SELECT CASE WHEN key = ? THEN 0 WHEN key {LIKE} THEN 1 ELSE 2 END, repository_id, key
        FROM package WHERE repository_id IN ({placeholders(repositories)}){f" AND key {LIKE}" * words}
        ORDER BY 1, 3 LIMIT ?
    """


def _source(attrs: str | None) -> tuple[str | None, datetime | None]:
    """The route and the time in the attributes of a cached file."""
    origin = None if attrs is None else Origin.of(load(attrs))
    return (None, None) if origin is None else (origin.route, at(origin.fetched_ms))


def _package(row: Row) -> PackageSummary:
    route, fetched_at = _source(row[11])
    if route is None and row[12] is not None:  # images have no files
        route, fetched_at = row[12], at(row[13])
    return PackageSummary(
        key=row[0],
        name=row[1],
        latest=row[2],
        versions=row[3],
        withdrawn=row[4],
        deprecated=row[5],
        files=row[6],
        size=row[7],
        downloads=row[8],
        created_at=at(row[9]),
        updated_at=at(row[10]),
        route=route,
        fetched_at=fetched_at,
    )
