"""
The indexes of trigrams: what they have of each package, and queries that are narrowed to what they find.

``package_text`` has the key of each package by its parts of three characters, and ``about_text`` the text in
``package_about``. On SQLite they are FTS5 tables, which triggers keep up; on PostgreSQL views, and trigram indexes of
the tables themselves are used. They cover all repositories. A pattern for an index must have no ESCAPE, so it stands
for at least the texts of the pattern that it is made from: queries test that one, too.

The text about a package is its name, and the summary, the keywords and the authors of its highest live version; its
length is bounded. It is written soon after the change of the package, together with what that version needs (see
L{pkgrepo.storage.catalog.descriptions}, L{dependencies}). Images of an earlier release, which have none yet, get theirs
from L{fill_abouts}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages import versions
from pkgrepo.storage.catalog.packages.dependencies import Needs, needs_of, put_dependencies
from pkgrepo.storage.catalog.rows import (
    LIKE,
    column,
    number,
    placeholders,
    scalar,
)

log = Logger()

_PEOPLE: Final = ("maintainers", "maintainer", "maintainer_email", "author", "authors", "author_email", "developers")
MOST_PEOPLE: Final = 20
LONGEST_NAME: Final = 200  # characters
LONGEST_LINE: Final = 300  # characters of a summary, and of a licence
LONGEST_ABOUT: Final = 500  # characters; most summaries have less than 100
_SUMMARIES: Final = ("summary", "description")  # the first that there is; some formats have a long text in the second


# Packages; of more, the order of the list is read instead, until a page is full. Each is read twice, in some 5 us.
FEW: Final = 1000
KEYS: Final = "keys"
TEXTS: Final = "texts"
SHORTEST: Final = 3  # characters that are indexed together
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_WILDCARDS: Final = re.compile("[%_]")
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+")  # numbers and words
LONGEST_TERM: Final = 100  # characters of an operand that an index is asked for, which reads a list for each of them
MOST_PARTS: Final = 6  # of all operands, which are tried one after the other, most of them in less than 1 ms


def about_text(name: str, meta: Mapping[str, Any]) -> str:
    """The text of a package from its name and the metadata of a version."""
    summary = summary_of(meta)
    keywords = meta.get("keywords")
    words = [each for each in keywords if isinstance(each, str)] if isinstance(keywords, Sequence) else []
    if isinstance(keywords, str):
        words = [keywords]
    # Keywords and authors come before a long summary: they are what the package is meant to be found by.
    short = [*words[:LONGEST_ABOUT], *people_of(meta)]
    joined = " ".join((name, *(each[:LONGEST_ABOUT] for each in short), summary[: 4 * LONGEST_ABOUT]))
    return " ".join(_plain(joined).split())[:LONGEST_ABOUT].lower()


def summary_of(meta: Mapping[str, Any]) -> str:
    """What a version says that it is, or an empty text."""
    return next((text for key in _SUMMARIES if isinstance(text := meta.get(key), str) and text.strip()), "")


def license_of(meta: Mapping[str, Any]) -> str:
    """The licence that a version declares, or an empty text."""
    return str(meta.get("license_expression") or meta.get("license") or "")


def people_of(meta: Mapping[str, Any]) -> list[str]:
    """The names of people and organisations in the metadata of a version, or their addresses; each once."""
    found: dict[str, None] = {}
    for key in _PEOPLE:
        value = meta.get(key)
        for each in value if isinstance(value, list) else [value]:
            name = each.get("name") or each.get("email") if isinstance(each, dict) else each
            if isinstance(name, str) and name.strip():
                found[name.strip()[:LONGEST_NAME]] = None
    return list(found)[:MOST_PEOPLE]


@frozen
class About:
    """What is stored of a package: the text that is indexed, the summary and licence that lists show, and its needs."""

    text: str
    summary: str
    license: str
    needs: Needs


def about_of(name: str, meta: Mapping[str, Any]) -> About:
    """What is stored of a package from its name and the metadata of a version."""
    return About(about_text(name, meta), _line(summary_of(meta)), _line(license_of(meta)), needs_of(meta))


def put_about(tx: Transaction, package_id: int, name: str) -> None:
    """Bring the text of a package and what it needs up to date with its highest live version."""
    found = versions.highest_live(tx, package_id, None)
    try:
        about = about_of(name, {} if found is None else found.meta)
    except Exception:  # noqa: BLE001 - whatever a publisher wrote keeps nobody from finding other packages
        log.failure("the metadata of {name} say nothing; it is found by its name only", name=name)
        about = about_of(name, {})
    put_dependencies(tx, package_id, about.needs)
    tx.send(
        """
        INSERT INTO package_about (package_id, text, summary, license) VALUES (?, ?, ?, ?)
        ON CONFLICT (package_id) DO UPDATE
        SET text = excluded.text, summary = excluded.summary, license = excluded.license
        WHERE package_about.text <> excluded.text OR package_about.summary <> excluded.summary
            OR package_about.license <> excluded.license
        """,
        (package_id, about.text, about.summary, about.license),
    )


def _line(text: str) -> str:
    """The beginning of a text without line breaks."""
    return " ".join(_plain(text[: 4 * LONGEST_LINE]).split())[:LONGEST_LINE]


def _plain(text: str) -> str:
    """A text without what cannot be stored: PostgreSQL has no NUL. It would keep later events from being followed."""
    return text.replace("\0", " ")


def without_about(r: Reader, after: int, limit: int) -> list[int]:
    """The ids of packages behind ``after`` that have no text yet. Reads the index of all packages in the worst case."""
    # not NOT EXISTS, for which PostgreSQL may read all texts
    sql = """
        SELECT p.id FROM package p
        WHERE p.id > ? AND (SELECT a.package_id FROM package_about a WHERE a.package_id = p.id) IS NULL
        ORDER BY p.id LIMIT ?
    """
    return column(r, sql, (after, limit))


def fill_abouts(tx: Transaction, package_ids: Sequence[int]) -> None:
    """Write the texts of packages that have none; those that were removed meanwhile are skipped."""
    for package_id in package_ids:
        name = scalar(tx, "SELECT name FROM package WHERE id = ?", (package_id,))
        if name is not None:
            put_about(tx, package_id, name)


def find_terms(r: Reader, patterns: Sequence[str], indexed: str = KEYS, *, few: int = FEW) -> list[str]:
    """
    Patterns of the index for some operands of LIKE with ESCAPE, which at most ``few`` packages match.

    One part of an operand is enough if so few match it, for another that millions match would have the index read
    millions of entries: with a million of keys such as ``filler-615136`` that number takes 0.3 ms, and the whole word
    130. Numbers are tried first, and then long parts. If none is enough, or none has three characters in a row, the
    result is empty: ``tables`` and ``narrowed`` are then those of all packages. ``indexed`` is ``KEYS`` or ``TEXTS``.
    """
    terms = _indexed(patterns)
    parts = {f"%{part}%" for term in terms for part in _PARTS.findall(term) if len(part) >= SHORTEST}
    rare = sorted(parts, key=lambda part: (not part[1].isdigit(), -len(part), part))[:MOST_PARTS]
    choices = [[each] for each in dict.fromkeys((*rare, *sorted(terms, key=len, reverse=True)))]
    if len(terms) > 1:
        choices.append(terms)
    return next((each for each in choices if _are_matched(r, each, indexed, few)), [])


def _are_matched(r: Reader, terms: Sequence[str], indexed: str, most: int) -> bool:
    if indexed == KEYS:
        sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM package_text t WHERE {all_like('t.key', len(terms))} LIMIT ?) found"
    else:
        sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM about_text t WHERE {all_like('t.text', len(terms))} LIMIT ?) found"
    return number(r, sql, (*terms, most + 1)) <= most


def is_indexed(patterns: Sequence[str]) -> bool:
    """Whether any of such operands has three characters in a row."""
    return bool(_indexed(patterns))


def tables(terms: int) -> str:
    """The tables of a query for packages ``p`` by this number of terms."""
    # The words CROSS JOIN keep SQLite from reading the tables in the other order.
    return "package_text t CROSS JOIN package p" if terms else "package p"


def narrowed(terms: int) -> str:
    """The beginning of the condition of such a query; the terms are its parameters."""
    return f"p.id = t.rowid AND {all_like('t.key', terms)} AND " if terms else ""


def key_of(terms: int) -> str:
    """The key of a package that such a query tests by the operands: PostgreSQL shall not look for these once more."""
    return "p.key || ''" if terms else "p.key"


def all_like(name: str, terms: int) -> str:
    """The condition that a column of an index matches this number of terms."""
    return " AND ".join([f"{name} LIKE ?"] * terms)


def _indexed(patterns: Sequence[str]) -> list[str]:
    terms = [_ESCAPED.sub(_unescape, each) for each in patterns]
    terms = [each if len(each) <= LONGEST_TERM else f"{each[:LONGEST_TERM]}%" for each in terms]
    return [each for each in terms if any(len(part) >= SHORTEST for part in _WILDCARDS.split(each))]


def _unescape(match: re.Match[str]) -> str:
    return "_" if match[1] in "%_\\" else match[1]


def named(terms: int, repositories: int, words: int) -> str:
    """The conditions for the repository and the key of a package."""
    return f"{narrowed(terms)}p.repository_id IN ({placeholders(repositories)}){with_words(words, terms)}"


def with_words(count: int, terms: int = 0) -> str:
    """The conditions that the key of a package matches this number of words."""
    return f" AND {key_of(terms)} {LIKE}" * count
