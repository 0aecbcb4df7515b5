"""
Search: what people type, which packages it finds, and in which order.

Words are looked for in name, description and keywords, and all of them must be found. ``keywords:a,b``, ``author:x``,
``maintainer:x``, ``scope:x`` and the word ``@x`` narrow the rest down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

from . import names
from .packument import format_time

DEFAULT_SIZE: Final = 20
MOST_SIZE: Final = 250
MOST_FROM: Final = 10_000  # nobody turns that many pages
LONGEST_TEXT: Final = 500  # characters; what is beyond is not looked at
MOST_WORDS: Final = 20

# How well a word fits, best first.
_SAME_NAME, _NAME_BEGINS, _IN_NAME, _KEYWORD, _IN_DESCRIPTION = 100.0, 40.0, 20.0, 15.0, 5.0
_MOST_POPULAR: Final = 6.0  # downloads, in powers of ten, at which popularity is 1


@frozen
class Person:
    """Somebody who maintains or published a package."""

    name: str
    email: str = ""


@frozen
class Row:
    """
    A package as search sees it, told of its latest version.

    ``version``, ``date`` and ``publisher`` are always there: npm prints nonsense for what misses them.
    """

    name: str
    version: str
    date: datetime
    publisher: Person
    description: str = ""
    keywords: Sequence[str] = ()
    author: str = ""
    license: str = ""
    maintainers: Sequence[Person] = ()
    stars: Sequence[str] = ()  # names of those who gave one
    links: dict[str, str] = field(factory=dict)
    downloads: int = 0
    deprecated: bool = False


@frozen
class Query:
    """What is looked for, in lower case. Everything of it must fit; ``keywords``, any one of each group."""

    words: tuple[str, ...] = ()
    keywords: tuple[frozenset[str], ...] = ()
    authors: tuple[str, ...] = ()
    maintainers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


@frozen
class Page:
    """Which of the results are wanted."""

    size: int = DEFAULT_SIZE
    start: int = 0


def read_query(text: str) -> Query:
    """The query that a text asks; unknown qualifiers are words."""
    found: dict[str, list[str]] = {"words": [], "keywords": [], "author": [], "maintainer": [], "scope": []}
    for term in text[:LONGEST_TEXT].lower().split()[:MOST_WORDS]:
        qualifier, colon, value = term.partition(":")
        if colon and value and qualifier in found and qualifier != "words":
            found[qualifier].append(value)
        elif term.startswith("@") and "/" not in term and len(term) > 1:
            found["scope"].append(term)
        else:
            found["words"].append(term)
    return Query(
        words=tuple(found["words"]),
        keywords=tuple(frozenset(filter(None, each.split(","))) for each in found["keywords"]),
        authors=tuple(found["author"]),
        maintainers=tuple(found["maintainer"]),
        scopes=tuple(each.removeprefix("@") for each in found["scope"]),
    )


def read_page(size: str | None, start: str | None) -> Page:
    """The page that the parameters ``size`` and ``from`` ask for; what is no number is not given."""
    return Page(size=_number(size, DEFAULT_SIZE, MOST_SIZE), start=_number(start, 0, MOST_FROM))


def score(query: Query, row: Row) -> float | None:
    """How well a package fits, the more the better; None when it does not."""
    if not _narrowed(query, row):
        return None
    total = 1.0
    for word in query.words:
        fit = _fit(word, row)
        if fit == 0:
            return None
        total += fit
    return total * (0.5 if row.deprecated else 1.0)


def find(query: Query, rows: Iterable[Row], page: Page) -> tuple[list[tuple[float, Row]], int]:
    """The results of a page with their scores, best first, and how many there are in all."""
    scored = [(fit, row) for row in rows if (fit := score(query, row)) is not None]
    scored.sort(key=lambda each: (-each[0], -each[1].downloads, each[1].name))
    return scored[page.start : page.start + page.size], len(scored)


def answer(results: Sequence[tuple[float, Row]], total: int, now: datetime, base_url: str) -> dict[str, Any]:
    """What ``/-/v1/search`` answers; ``base_url`` is the repository's address without a slash at the end."""
    return {"objects": [_object(*each, base_url) for each in results], "total": total, "time": format_time(now)}


def listing(rows: Iterable[Row], updated_ms: int) -> dict[str, Any]:
    """What the old ``/-/all`` answers: every package, by its name."""
    document: dict[str, Any] = {"_updated": updated_ms}
    for row in rows:
        document[row.name] = {
            "name": row.name,
            "description": row.description,
            "dist-tags": {"latest": row.version},
            "maintainers": [{"name": each.name, "email": each.email} for each in row.maintainers],
            "author": {"name": row.author},
            "keywords": list(row.keywords),
            "license": row.license,
            "time": {"modified": format_time(row.date)},
            "versions": {row.version: "latest"},
        }
    return document


def _number(text: str | None, default: int, most: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return default
    return min(int(text), most)


def _narrowed(query: Query, row: Row) -> bool:
    checks: tuple[tuple[Sequence[Any], Callable[[Any], bool]], ...] = (
        (query.scopes, lambda scope: names.split_scope(row.name)[0].lower() == scope),
        (query.keywords, lambda wanted: not wanted.isdisjoint(each.lower() for each in row.keywords)),
        (query.authors, lambda author: author in row.author.lower()),
        (query.maintainers, lambda name: any(each.name.lower() == name for each in row.maintainers)),
    )
    return all(fits(value) for values, fits in checks for value in values)


def _fit(word: str, row: Row) -> float:
    name = row.name.lower()
    bare = names.split_scope(name)[1]
    if word in (name, bare):
        return _SAME_NAME
    if bare.startswith(word):
        return _NAME_BEGINS
    if word in name:
        return _IN_NAME
    if any(word == each.lower() for each in row.keywords):
        return _KEYWORD
    if word in row.description.lower():
        return _IN_DESCRIPTION
    return _IN_DESCRIPTION / 2 if any(word in each.lower() for each in row.keywords) else 0.0


def _object(fit: float, row: Row, base_url: str) -> dict[str, Any]:
    popularity = min(math.log10(row.downloads + 1) / _MOST_POPULAR, 1.0)
    scope = names.split_scope(row.name)[0]
    package: dict[str, Any] = {
        "name": row.name,
        "scope": scope or "unscoped",
        "version": row.version,
        "description": row.description,
        "keywords": list(row.keywords),
        "date": format_time(row.date),
        "links": {"npm": f"{base_url}/{row.name}", **row.links},
        "publisher": _person(row.publisher),
        "maintainers": [_person(each) for each in row.maintainers],
    }
    if row.author:
        package["author"] = {"name": row.author}
    if row.license:
        package["license"] = row.license
    return {
        "package": package,
        "score": {
            "final": round(fit, 3),
            "detail": {
                "quality": 0.5 if row.deprecated else 1.0,
                "popularity": round(popularity, 3),
                "maintenance": 1.0,
            },
        },
        "searchScore": round(fit, 3),
        "flags": {"insecure": 0, **({"deprecated": True} if row.deprecated else {})},
    }


def _person(person: Person) -> dict[str, str]:
    return {"username": person.name, "email": person.email}
