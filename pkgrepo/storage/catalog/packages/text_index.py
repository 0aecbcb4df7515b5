"""
Narrows queries for parts of names, and of what packages say of themselves, to what the index of trigrams finds.

``package_text`` has the key of each package by its parts of three characters, and ``about_text`` the text in
``package_about``. On SQLite they are FTS5 tables, which triggers keep up; on PostgreSQL views, and trigram indexes of
the tables themselves are used. They cover all repositories.
A pattern for it must have no ESCAPE, so it stands for at least the texts of the pattern that it is made from:
queries test that one, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import number

# Packages; of more, the order of the list is read instead, until a page is full. Each is read twice, in some 5 us.
FEW: Final = 1000
KEYS: Final = "keys"
TEXTS: Final = "texts"
SHORTEST: Final = 3  # characters that are indexed together
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_WILDCARDS: Final = re.compile("[%_]")


def find_terms(r: Reader, patterns: Sequence[str], indexed: str = KEYS) -> list[str]:
    """
    Patterns of the index for some operands of LIKE with ESCAPE, which at most ``FEW`` packages match.

    One operand is enough if so few match it, for another that millions match would have the index read millions of
    entries. If none is, or none has three characters in a row, the result is empty: ``tables`` and ``narrowed`` are
    then those of all packages. ``indexed`` is ``KEYS`` or ``TEXTS``.
    """
    terms = _indexed(patterns)
    choices = [[each] for each in sorted(terms, key=len, reverse=True)]
    if len(terms) > 1:
        choices.append(terms)
    return next((each for each in choices if _are_matched_by_few(r, each, indexed)), [])


def _are_matched_by_few(r: Reader, terms: Sequence[str], indexed: str) -> bool:
    if indexed == KEYS:
        sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM package_text t WHERE {all_like('t.key', len(terms))} LIMIT ?) found"
    else:
        sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM about_text t WHERE {all_like('t.text', len(terms))} LIMIT ?) found"
    return number(r, sql, (*terms, FEW + 1)) <= FEW


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
    return [each for each in terms if any(len(part) >= SHORTEST for part in _WILDCARDS.split(each))]


def _unescape(match: re.Match[str]) -> str:
    return "_" if match[1] in "%_\\" else match[1]
