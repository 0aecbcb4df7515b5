"""
Searches for packages of some repositories by words, in their keys and in what they say of themselves.

==================================  ==================================================================================
packages with the words             are found by
==================================  ==================================================================================
few, in all repositories            the index of trigrams
more, in a small repository         reading its keys, together with those of other small ones
more, in a large repository         reading its keys by downloads, the most first, until there are enough
unknown, since all words are short  reading the keys that begin with the first word, and those with the most downloads
==================================  ==================================================================================

The last way finds no package of a large repository that it does not read: it would have to read all where few match.

Where fewer packages than are wanted have the words in their keys, those follow that have them in the text of
``package_about``; of large repositories, the last way stands for the last two there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from pkgrepo.interfaces import Reader, Value
from pkgrepo.storage.catalog.packages.facts import Described
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, own, summaries_of
from pkgrepo.storage.catalog.packages.text_index import (
    FEW,
    TEXTS,
    all_like,
    find_terms,
    is_indexed,
    named,
    tables,
    with_words,
)
from pkgrepo.storage.catalog.rows import (
    LAST_CHARACTER,
    LIKE,
    batches,
    column,
    like,
    number,
    placeholders,
)

_CHUNK: Final = 500  # repositories in one query
# 0 to 2 by how the key fits the first word, or 3; downloads; key; id of the repository
_Hit = tuple[int, int, str, int]
_HIT: Final = f"""
    SELECT CASE WHEN p.key = ? THEN 0 WHEN p.key {LIKE} THEN 1 ELSE 2 END, p.downloads, p.key, p.repository_id
"""


@frozen
class Sizes:
    """Numbers of packages that decide how words are looked for."""

    indexed: int = FEW  # with the words, up to which they are found by the index
    few: int = FEW  # that begin with a word, up to which these are read in the order of keys
    small: int = 1000  # of a repository, up to which all its keys are read
    read: int = 5000  # with downloads, and as many without, whose keys are read for words too short for the index


SIZES: Final = Sizes()
# A limit that no query reaches. It keeps PostgreSQL from testing the words before it has the order: it expects that
# they match few keys, and would read and sort all that do, which took 3 s where 40,000 of ten million match.
ALL: Final = 2**62


@frozen
class _Search:
    """What is looked for in some repositories: at most ``limit`` packages with every word."""

    words: Sequence[str]
    limit: int
    derived: bool
    sizes: Sizes

    @property
    def own(self) -> str:
        """The condition for packages that are made from others."""
        return own(self.derived)

    @property
    def patterns(self) -> list[str]:
        """The words as operands of LIKE."""
        return [like(word) for word in self.words]

    @property
    def first(self) -> tuple[Value, Value]:
        """The parameters of ``_HIT``."""
        first = self.words[0] if self.words else ""
        return first, like(first)[1:]


def search_packages(
    r: Reader,
    described: Described,
    repository_ids: Sequence[int],
    words: Sequence[str],
    limit: int,
    *,
    derived: bool = True,
    sizes: Sizes = SIZES,
) -> list[tuple[int, PackageSummary]]:
    """The packages that L{find_hits} finds, as pairs (repository id, summary)."""
    return summaries_of(r, find_hits(r, described, repository_ids, words, limit, derived=derived, sizes=sizes))


def find_hits(
    r: Reader,
    _: Described,
    repository_ids: Sequence[int],
    words: Sequence[str],
    limit: int,
    *,
    derived: bool = True,
    sizes: Sizes = SIZES,
) -> list[tuple[int, str]]:
    """
    The packages of some repositories whose key or text contains every word, as pairs (repository id, key).

    Without ``derived`` those are left out that are made from packages of other repositories; see L{set_derived}.

    Order: the key that equals the first word, then keys that start with it, then other keys, then texts; each group by
    downloads, the most first, and then by key.
    """
    search = _Search(words, limit, derived, sizes)
    terms = find_terms(r, search.patterns, few=sizes.indexed)
    together, large = _by_size(r, repository_ids, terms, sizes.small)
    found: set[_Hit] = set()
    for some in together:
        found.update(_all_hits(r, some, search, terms))
    for repository_id in large:
        found.update(_leading_hits(r, repository_id, search))
    if words and len(found) < limit:
        named = {(key, owner) for _, _, key, owner in found}
        described = _described_hits(r, repository_ids, evolve(search, limit=limit + len(named)))
        found.update(each for each in described if each[2:] not in named)
    ordered = sorted((fit, -downloads, key, owner) for fit, downloads, key, owner in found)
    return [(owner, key) for _, _, key, owner in ordered[:limit]]


def _described_hits(r: Reader, repository_ids: Sequence[int], search: _Search) -> list[_Hit]:
    """
    The first hits by text, with the most downloads; see the end of the module's description. The first value is 3.

    PostgreSQL shall not look for the words in the index once more: so a text is joined with an empty one.
    """
    patterns, read = search.patterns, search.sizes.read
    terms = find_terms(r, patterns, TEXTS, few=search.sizes.indexed)
    together, large = _by_size(r, repository_ids, terms, search.sizes.small)
    found: list[_Hit] = []
    for some in together:
        found += r.all(
            f"""
            SELECT 3, p.downloads, p.key, p.repository_id
            FROM {_text_tables(len(terms))} CROSS JOIN package_about a
            WHERE {_found_in_texts(len(terms))} p.repository_id IN ({placeholders(len(some))})
                AND a.package_id = p.id {_with_words_in_text(len(patterns))} {search.own}
            ORDER BY 2 DESC, 3 LIMIT ?
            """,
            (*terms, *some, *patterns, search.limit),
        )
    for repository_id in large:
        found += r.all(
            f"""
            SELECT 3, p.downloads, p.key, p.repository_id FROM (
                SELECT * FROM (
                    SELECT id, key, downloads, repository_id, derived FROM package
                    WHERE repository_id = ? AND downloads > 0 ORDER BY downloads DESC, key DESC LIMIT ?
                ) used
                UNION ALL SELECT * FROM (
                    SELECT id, key, downloads, repository_id, derived FROM package
                    WHERE repository_id = ? AND downloads = 0 ORDER BY key LIMIT ?
                ) unused
            ) p WHERE {_with_words_in_text_of(len(patterns))} {search.own}
            ORDER BY 2 DESC, 3 LIMIT ?
            """,
            (repository_id, read, repository_id, read, *patterns, search.limit),
        )
    return found


def _by_size(
    r: Reader, ids: Sequence[int], terms: Sequence[str], small: int
) -> tuple[Iterator[Sequence[int]], list[int]]:
    """The repositories that one query searches, in batches, and those that are not read as a whole without terms."""
    large: list[int] = []
    for some in () if terms else batches(ids, _CHUNK):
        sql = f"SELECT id FROM repository WHERE id IN ({placeholders(len(some))}) AND package_count > ?"
        large += column(r, sql, (*some, small))
    return batches(sorted({*ids}.difference(large)), _CHUNK), large


def _all_hits(r: Reader, repository_ids: Sequence[int], search: _Search, terms: Sequence[str]) -> list[_Hit]:
    """The first hits in several repositories, all of which are sorted."""
    return r.all(
        f"""
        {_HIT} FROM {tables(len(terms))}
        WHERE {named(len(terms), len(repository_ids), len(search.words))} {search.own}
        ORDER BY 1, 2 DESC, 3 LIMIT ?
        """,
        (*search.first, *terms, *repository_ids, *search.patterns, search.limit),
    )


def _leading_hits(r: Reader, repository_id: int, search: _Search) -> list[_Hit]:
    """
    The first hits in one repository with many packages, from each of three groups: the first word itself, what begins
    with it, and all.

    The second group is read from the first word on in the order of keys if it is small. What begins with the word in
    capital letters is then part of the third group only.
    """
    if not search.words:
        return _by_downloads(r, repository_id, search)
    if not is_indexed(search.patterns):
        return _hits_of_short_words(r, repository_id, search)
    first, few = search.words[0], search.sizes.few
    beginnings = (first, first + LAST_CHARACTER)
    sql = "SELECT COUNT(*) FROM (SELECT 1 FROM package WHERE repository_id = ? AND key >= ? AND key < ? LIMIT ?) found"
    if number(r, sql, (repository_id, *beginnings, few + 1)) <= few:
        found: list[_Hit] = r.all(
            f"""
            {_HIT} FROM package p
            WHERE p.repository_id = ? AND p.key >= ? AND p.key < ? {with_words(len(search.words))} {search.own}
            ORDER BY 1, 2 DESC, 3 LIMIT ?
            """,
            (*search.first, repository_id, *beginnings, *search.patterns, search.limit),
        )
    else:
        found = r.all(
            f"""
            {_HIT} FROM package p
            WHERE p.repository_id = ? AND p.key = ? {with_words(len(search.words))} {search.own}
            """,
            (*search.first, repository_id, first, *search.patterns),
        )
        found += _by_downloads(r, repository_id, search, [like(first)[1:]])
    if len(found) < search.limit:
        found += _by_downloads(r, repository_id, search)
    return found


def _hits_of_short_words(r: Reader, repository_id: int, search: _Search) -> list[_Hit]:
    """The first hits among the first packages by key that begin with the first word, and by downloads."""
    first = search.words[0]
    tested: list[Value] = [*search.patterns, search.limit]
    found: list[_Hit] = r.all(
        f"""
        {_HIT} FROM (
            SELECT key, downloads, repository_id, derived FROM package
            WHERE repository_id = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?
        ) p WHERE 1 = 1 {with_words(len(search.words))} {search.own} ORDER BY 1, 2 DESC, 3 LIMIT ?
        """,
        (*search.first, repository_id, first, first + LAST_CHARACTER, search.sizes.few, *tested),
    )
    # In the order of the index: sorting by key what has the same downloads would read all of it.
    for part in ("downloads > 0 ORDER BY downloads DESC, key DESC", "downloads = 0 ORDER BY key"):
        found += r.all(
            f"""
            {_HIT} FROM (
                SELECT key, downloads, repository_id, derived FROM package
                WHERE repository_id = ? AND {part} LIMIT ?
            ) p WHERE 1 = 1 {with_words(len(search.words))} {search.own} ORDER BY 1, 2 DESC, 3 LIMIT ?
            """,
            (*search.first, repository_id, search.sizes.read, *tested),
        )
    return found


def _by_downloads(r: Reader, repository_id: int, search: _Search, patterns: Sequence[str] = ()) -> list[_Hit]:
    """The hits with the most downloads; their keys match the patterns, too."""
    every = [*search.patterns, *patterns]
    found: list[_Hit] = r.all(
        f"""
        {_HIT} FROM package p
        WHERE p.repository_id = ? AND p.downloads > 0 {with_words(len(every))} {search.own}
        ORDER BY p.downloads DESC, p.key LIMIT ?
        """,
        (*search.first, repository_id, *every, search.limit),
    )
    if len(found) < search.limit:  # most packages may have none: in one query all of these would be sorted
        found += r.all(
            f"""
            {_HIT} FROM (
                SELECT key, downloads, repository_id, derived FROM package
                WHERE repository_id = ? AND downloads = 0 ORDER BY key LIMIT ?
            ) p WHERE 1 = 1 {with_words(len(every))} {search.own} ORDER BY p.key LIMIT ?
            """,
            (*search.first, repository_id, ALL, *every, search.limit - len(found)),
        )
    return found


def _text_tables(terms: int) -> str:
    return "about_text t CROSS JOIN package p" if terms else "package p"


def _found_in_texts(terms: int) -> str:
    return f"p.id = t.rowid AND {all_like('t.text', terms)} AND" if terms else ""


def _with_words_in_text_of(count: int) -> str:
    """The condition for packages ``p``: not a join, for which PostgreSQL would read the texts of all packages."""
    return " AND ".join([f"(SELECT a.text FROM package_about a WHERE a.package_id = p.id) {LIKE}"] * count)


def _with_words_in_text(count: int) -> str:
    return f" AND a.text || '' {LIKE}" * count
