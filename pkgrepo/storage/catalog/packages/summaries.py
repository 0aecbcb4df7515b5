"""Summaries of packages and versions for lists and search: number of versions and files, size, downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Value
from pkgrepo.model import Origin, VersionState
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.text_index import find_terms, narrowed, tables
from pkgrepo.storage.catalog.rows import LIKE, at, every, find, like, load, non_null, number, optional_conditions, to_ms


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
    A version with the number of its files; ``size`` is their sum in bytes, ``downloads`` that of their downloads.

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
    downloads: int
    route: str | None
    fetched_at: datetime | None


# The words CROSS JOIN keep SQLite from reading all blobs of a storage first, which it does while it has no statistics.
_PACKAGE = """
    SELECT p.key, p.name,
           COALESCE(p.latest, (SELECT v.text FROM version v WHERE v.package_id = p.id AND v.state = 'live'
                               ORDER BY v.sort DESC, v.key DESC LIMIT 1),
                    (SELECT t.name FROM tag t WHERE t.package_id = p.id AND t.digest IS NOT NULL
                     AND (t.expires_at IS NULL OR t.served IS NOT NULL)
                     ORDER BY CASE t.name WHEN 'latest' THEN 0 ELSE 1 END, t.updated_at DESC, t.name LIMIT 1)),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id)
           + (SELECT COUNT(*) FROM tag t WHERE t.package_id = p.id AND t.digest IS NOT NULL),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id AND v.state <> 'live' AND v.state = 'yanked'),
           (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id AND v.state <> 'live' AND v.state = 'deprecated'),
           (SELECT COUNT(*) FROM file f WHERE f.package_id = p.id)
           + (SELECT COUNT(*) FROM manifest m WHERE m.package_id = p.id)
           + (SELECT COUNT(*) FROM package_blob x WHERE x.package_id = p.id),
           (SELECT COALESCE(SUM(f.size), 0) FROM file f WHERE f.package_id = p.id)
           + (SELECT COALESCE(SUM(m.size), 0) FROM manifest m WHERE m.package_id = p.id)
           + (SELECT COALESCE(SUM(b.size), 0) FROM package_blob x CROSS JOIN repository r CROSS JOIN blob b
              WHERE x.package_id = p.id AND r.id = p.repository_id
                  AND b.storage_id = r.storage_id AND b.sha256 = x.sha256),
           p.downloads, p.created_at, p.updated_at,
           CASE WHEN (SELECT r.type FROM repository r WHERE r.id = p.repository_id) <> 'Hosted' THEN (
               SELECT f.attrs FROM file f WHERE f.package_id = p.id AND f.attrs LIKE '%"upstream":%'
               ORDER BY f.created_at DESC, f.id DESC LIMIT 1
           ) END,
           (SELECT d.route FROM upstream_document d WHERE d.repository_id = p.repository_id AND d.package_key = p.key
            AND d.route <> '' ORDER BY d.fetched_at DESC, d.id DESC LIMIT 1),
           (SELECT MAX(d.fetched_at) FROM upstream_document d
            WHERE d.repository_id = p.repository_id AND d.package_key = p.key AND d.route <> '')
"""
_FILTERS = ("p.repository_id = ?", f"p.key {LIKE}")
PACKAGE_ORDERS: Final[Mapping[str, Order[PackageSummary]]] = both_ways(
    {
        "name": [("p.key", str, lambda each: each.key)],
        "updated_at": [
            ("p.updated_at", int, lambda each: to_ms(each.updated_at)),
            ("p.key", str, lambda each: each.key),
        ],
        "downloads": [("p.downloads", int, lambda each: each.downloads), ("p.key", str, lambda each: each.key)],
    }
)

_VERSION = """
    SELECT v.key, v.text, v.sort, v.state, v.reason, v.published_at, v.publisher,
           (SELECT COUNT(*) FROM file f WHERE f.version_id = v.id),
           (SELECT COALESCE(SUM(f.size), 0) FROM file f WHERE f.version_id = v.id),
           (SELECT COALESCE(SUM(d.count), 0) FROM version_download d WHERE d.version_id = v.id),
           (SELECT f.attrs FROM file f WHERE f.version_id = v.id AND f.attrs LIKE '%"upstream":%'
            ORDER BY f.created_at DESC, f.id DESC LIMIT 1)
    FROM version v
"""
_VERSION_FILTERS = ("v.package_id = ?", f"v.text {LIKE}")
VERSION_ORDERS: Final[Mapping[str, Order[VersionSummary]]] = both_ways(
    {
        "version": [("v.sort", bytes, lambda each: each.sort), ("v.key", str, lambda each: each.key)],
        "published_at": [
            ("v.published_at", int, lambda each: to_ms(each.published_at)),
            ("v.key", str, lambda each: each.key),
        ],
    }
)


def find_package_summary(r: Reader, repository_id: int, key: str) -> PackageSummary | None:
    """The summary of the package with this key, or None."""
    return find(r, _package, f"{_PACKAGE} FROM package p WHERE p.repository_id = ? AND p.key = ?", (repository_id, key))


def list_package_summaries(
    r: Reader,
    repository_id: int,
    *,
    after: Sequence[Value] = (),
    skip: int = 0,
    limit: int = 50,
    search: str = "",
    order: str = "name",
) -> list[PackageSummary]:
    """
    A page of summaries in one of the ``PACKAGE_ORDERS``; with ``search``, of the packages whose key contains it.

    It starts after the position of the last one of the page before. ``skip`` is an offset, for callers
    that address pages by number; the skipped rows are read as well.
    """
    pattern = like(search.lower()) if search else None
    values, terms = (repository_id, pattern), find_terms(r, [pattern] if pattern else [])
    sorting = PACKAGE_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    return every(
        r,
        _package,
        f"""
        {_PACKAGE} FROM {tables(len(terms))}
        WHERE {narrowed(len(terms))}{optional_conditions(_FILTERS, values)} {beyond} ORDER BY {sorting.by}
        LIMIT ? OFFSET ?
        """,
        (*terms, *non_null(values), *after, limit, skip),
    )


def count_packages(r: Reader, repository_id: int, search: str = "") -> int:
    """The number of packages that ``list_package_summaries`` returns over all pages."""
    pattern = like(search.lower()) if search else None
    values, terms = (repository_id, pattern), find_terms(r, [pattern] if pattern else [])
    return number(
        r,
        f"""
        SELECT COUNT(*) FROM {tables(len(terms))}
        WHERE {narrowed(len(terms))}{optional_conditions(_FILTERS, values)}
        """,
        (*terms, *non_null(values)),
    )


def list_version_summaries(
    r: Reader,
    package_id: int,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    search: str = "",
    order: str = "-version",
) -> list[VersionSummary]:
    """
    A page of versions in one of the ``VERSION_ORDERS``; with ``search``, of those whose text contains it.

    It starts after the position of the last one of the page before.
    """
    values = (package_id, like(search) if search else None)
    sorting = VERSION_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    rows = r.all(
        f"""
        {_VERSION} WHERE {optional_conditions(_VERSION_FILTERS, values)} {beyond} ORDER BY {sorting.by}
        LIMIT ?
        """,
        (*non_null(values), *after, limit),
    )
    return [
        VersionSummary(
            *(key, text, sort, VersionState(state), reason, at(published_ms), publisher, *counted, *_source(attrs))
        )
        for key, text, sort, state, reason, published_ms, publisher, *counted, attrs in rows
    ]


def count_versions(r: Reader, package_id: int, search: str = "") -> int:
    """The number of versions that ``list_version_summaries`` returns over all pages."""
    values = (package_id, like(search) if search else None)
    sql = f"SELECT COUNT(*) FROM version v WHERE {optional_conditions(_VERSION_FILTERS, values)}"
    return number(r, sql, non_null(values))


def last_changed_packages(
    r: Reader, repository_ids: Sequence[int], limit: int, *, derived: bool = True
) -> list[tuple[int, str]]:
    """
    The packages of some repositories that changed last, as pairs (repository id, key), the latest first.

    Without ``derived`` as in a search.
    """
    found: list[tuple[int, str, int]] = []
    for repository_id in repository_ids:
        found += r.all(
            f"""
            SELECT updated_at, key, repository_id FROM package WHERE repository_id = ? {own(derived)}
            ORDER BY updated_at DESC, key DESC LIMIT ?
            """,
            (repository_id, limit),
        )
    return [(owner, key) for _, key, owner in sorted(found, reverse=True)[:limit]]


def own(derived: bool) -> str:
    """The condition that leaves out packages that are made from others, unless ``derived``."""
    return "" if derived else "AND derived = 0"


def summaries_of(r: Reader, places: Sequence[tuple[int, str]]) -> list[tuple[int, PackageSummary]]:
    """The summaries of packages, given by repository id and key; those that are gone are left out."""
    found = [(owner, find_package_summary(r, owner, key)) for owner, key in places]
    return [(owner, summary) for owner, summary in found if summary is not None]


def package_and_version_of_file(r: Reader, file_id: int) -> tuple[str, str] | None:
    """The keys of the package and of the version of a file; None if the file belongs to no version."""
    return r.one(
        """
        SELECT p.key, v.key FROM file f
        JOIN version v ON v.id = f.version_id JOIN package p ON p.id = v.package_id
        WHERE f.id = ?
        """,
        (file_id,),
    )


def _source(attrs: str | None) -> tuple[str | None, datetime | None]:
    """The route and the time in the attributes of a cached file."""
    origin = None if attrs is None else Origin.of(load(attrs))
    return (None, None) if origin is None else (origin.route, at(origin.fetched_ms))


def _package(row: Row) -> PackageSummary:
    *stored, created_ms, updated_ms, attrs, image_route, image_fetched_ms = row
    route, fetched_at = _source(attrs)
    if route is None and image_route is not None:  # images have no files
        route, fetched_at = image_route, at(image_fetched_ms)
    return PackageSummary(*(*stored, at(created_ms), at(updated_ms), route, fetched_at))
