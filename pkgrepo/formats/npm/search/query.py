"""
Search queries: the words, facets and page that a request asks for.

Words are searched for in name, description and keywords, and all of them must match. The terms ``keywords:a,b``,
``author:x``, ``maintainer:x``, ``scope:x`` and ``@x`` restrict the results further.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from pkgrepo.repositories.search_index import Query, facet, facet_with

from .rows import AUTHOR, KEYWORD, MAINTAINER, SCOPE

DEFAULT_SIZE: Final = 20
MOST_SIZE: Final = 250
MOST_FROM: Final = 10_000  # results; the last that a page may begin at
LONGEST_TEXT: Final = 500  # characters; the rest is ignored
MOST_WORDS: Final = 8  # and authors; each is one more pass over the packages that match the ones before
MOST_TERMS: Final = 20


@frozen
class Page:
    """The part of the results that is requested."""

    size: int = DEFAULT_SIZE
    start: int = 0


def read_query(text: str) -> Query:
    """The query in a text. A term with an unknown qualifier is a word."""
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
    """The page in the parameters ``size`` and ``from``; one that is no number is ignored."""
    return Page(size=_number(size, DEFAULT_SIZE, MOST_SIZE), start=_number(start, 0, MOST_FROM))


def _number(text: str | None, default: int, most: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return default
    return min(int(text), most)
