"""
Search: what people type, which packages it finds, and in which order.

Words are looked for in name, description and keywords, and all of them must be found. ``keywords:a,b``, ``author:x``,
``maintainer:x``, ``scope:x`` and the word ``@x`` narrow the rest down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.packument.document import format_time
from pkgrepo.repositories.search.index import Query, facet, facet_with

DEFAULT_SIZE: Final = 20
MOST_SIZE: Final = 250
MOST_FROM: Final = 10_000  # nobody turns that many pages
LONGEST_TEXT: Final = 500  # characters; what is beyond is not looked at
MOST_WORDS: Final = 8  # and authors; each is another pass over the packages that have those before
MOST_TERMS: Final = 20

# The facets of a package.
AUTHOR, KEYWORD, MAINTAINER, SCOPE, STAR = "author", "keyword", "maintainer", "scope", "star"

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
class Page:
    """Which of the results are wanted."""

    size: int = DEFAULT_SIZE
    start: int = 0


def read_query(text: str) -> Query:
    """The query that a text asks; unknown qualifiers are words."""
    found: dict[str, list[str]] = {"words": [], "keywords": [], "author": [], "maintainer": [], "scope": []}
    for term in text[:LONGEST_TEXT].lower().split()[:MOST_TERMS]:
        qualifier, colon, value = term.partition(":")
        if colon and value and qualifier in found and qualifier != "words":
            found[qualifier].append(value)
        elif term.startswith("@") and "/" not in term and len(term) > 1:
            found["scope"].append(term)
        else:
            found["words"].append(term)
    groups = [tuple(facet(KEYWORD, each) for each in group.split(",") if each) for group in found["keywords"]]
    groups += [(facet(MAINTAINER, each),) for each in found["maintainer"]]
    groups += [(facet(SCOPE, each.removeprefix("@")),) for each in found["scope"]]
    return Query(
        words=tuple(found["words"][:MOST_WORDS]),
        facets=tuple(groups),
        patterns=tuple(facet_with(AUTHOR, each) for each in found["author"][:MOST_WORDS]),
    )


def read_page(size: str | None, start: str | None) -> Page:
    """The page that the parameters ``size`` and ``from`` ask for; what is no number is not given."""
    return Page(size=_number(size, DEFAULT_SIZE, MOST_SIZE), start=_number(start, 0, MOST_FROM))


def answer(results: Sequence[tuple[float, Row]], total: int, now: datetime, base_url: str) -> dict[str, Any]:
    """What ``/-/v1/search`` answers; ``base_url`` is the repository's address without a slash at the end."""
    return {"objects": [_object(*each, base_url) for each in results], "total": total, "time": format_time(now)}


def _number(text: str | None, default: int, most: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return default
    return min(int(text), most)


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
