"""Packages and versions that match patterns: those of some repositories taken together, each key once."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Value
from pkgrepo.storage.catalog.packages.text_index import find_terms, named, tables
from pkgrepo.storage.catalog.rows import (
    LIKE,
    column,
    like,
    non_null,
    number,
    optional_conditions,
)

_OF_PACKAGE = (
    "EXISTS (SELECT 1 FROM version x WHERE x.package_id = p.id AND x.key = ?)",
    f"EXISTS (SELECT 1 FROM version x WHERE x.package_id = p.id AND x.meta {LIKE})",
    f"EXISTS (SELECT 1 FROM file f WHERE f.package_id = p.id AND f.attrs {LIKE})",
    f"""
    EXISTS (SELECT 1 FROM file f JOIN blob b ON b.storage_id = f.storage_id AND b.sha256 = f.sha256
            WHERE f.package_id = p.id AND b.digests {LIKE})
    """,
)


_OF_VERSION = (
    "v.key = ?",
    f"v.meta {LIKE}",
    f"EXISTS (SELECT 1 FROM file f WHERE f.version_id = v.id AND f.attrs {LIKE})",
    f"""
    EXISTS (SELECT 1 FROM file f JOIN blob b ON b.storage_id = f.storage_id AND b.sha256 = f.sha256
            WHERE f.version_id = v.id AND b.digests {LIKE})
    """,
)


@frozen
class Match:
    """
    What is looked for; None and empty mean that it does not matter.

    ``keys`` are operands of LIKE, all of which the key of the package must match; packages that match ``best`` come
    first. ``version`` is the key of a version. The others are parts of JSON texts: ``meta`` of a version's metadata,
    ``attrs`` of a file's attributes, ``digests`` of a file's digests without sha256.
    """

    keys: tuple[str, ...]
    best: str = ""
    version: str | None = None
    meta: str | None = None
    attrs: str | None = None
    digests: str | None = None

    @property
    def values(self) -> list[Value]:
        """The parameters of the optional conditions."""
        return [self.version, *(None if each is None else like(each) for each in (self.meta, self.attrs, self.digests))]


def matching_packages(r: Reader, repository_ids: Sequence[int], match: Match, skip: int, limit: int) -> list[str]:
    """
    A page of the keys of packages with versions that match, ordered by key.

    Reads every package if many names match.
    """
    if not repository_ids:
        return []
    terms = find_terms(r, match.keys)
    return column(
        r,
        f"""
        SELECT p.key FROM {tables(len(terms))}
        WHERE {named(len(terms), len(repository_ids), len(match.keys))}
        AND EXISTS (SELECT 1 FROM version y WHERE y.package_id = p.id)
        AND {optional_conditions(_OF_PACKAGE, match.values)}
        GROUP BY p.key ORDER BY CASE WHEN p.key {LIKE} THEN 0 ELSE 1 END, p.key LIMIT ? OFFSET ?
        """,
        (*terms, *repository_ids, *match.keys, *non_null(match.values), match.best, limit, skip),
    )


def count_packages(r: Reader, repository_ids: Sequence[int], match: Match) -> int:
    """The number of keys that ``matching_packages`` returns over all pages."""
    if not repository_ids:
        return 0
    terms = find_terms(r, match.keys)
    return number(
        r,
        f"""
        SELECT COUNT(DISTINCT p.key) FROM {tables(len(terms))}
        WHERE {named(len(terms), len(repository_ids), len(match.keys))}
        AND EXISTS (SELECT 1 FROM version y WHERE y.package_id = p.id)
        AND {optional_conditions(_OF_PACKAGE, match.values)}
        """,
        (*terms, *repository_ids, *match.keys, *non_null(match.values)),
    )


def matching_versions(
    r: Reader, repository_ids: Sequence[int], match: Match, skip: int, limit: int
) -> list[tuple[str, str]]:
    """
    A page of pairs of package key and version key, the highest version of a package first.

    Reads every version if many names match.
    """
    if not repository_ids:
        return []
    terms = find_terms(r, match.keys)
    return r.all(
        f"""
        SELECT p.key, v.key FROM {tables(len(terms))} JOIN version v ON v.package_id = p.id
        WHERE {named(len(terms), len(repository_ids), len(match.keys))}
        AND {optional_conditions(_OF_VERSION, match.values)}
        GROUP BY p.key, v.key, v.sort ORDER BY CASE WHEN p.key {LIKE} THEN 0 ELSE 1 END, p.key, v.sort DESC, v.key
        LIMIT ? OFFSET ?
        """,
        (*terms, *repository_ids, *match.keys, *non_null(match.values), match.best, limit, skip),
    )


def count_versions(r: Reader, repository_ids: Sequence[int], match: Match) -> int:
    """The number of pairs that ``matching_versions`` returns over all pages."""
    if not repository_ids:
        return 0
    terms = find_terms(r, match.keys)
    return number(
        r,
        f"""
        SELECT COUNT(*) FROM (
            SELECT p.key, v.key FROM {tables(len(terms))} JOIN version v ON v.package_id = p.id
            WHERE {named(len(terms), len(repository_ids), len(match.keys))}
            AND {optional_conditions(_OF_VERSION, match.values)}
            GROUP BY p.key, v.key
        ) found
        """,
        (*terms, *repository_ids, *match.keys, *non_null(match.values)),
    )
