"""
The rows of packages: what search needs of a package, stored as a fragment and renewed with each change.

Rows are rendered as results of a search, ``/-/v1/search``, and as members of the list of all packages, ``/-/all``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from attrs import evolve, field, frozen

from pkgrepo.formats.npm import names
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Version
from pkgrepo.repositories.clock import format_time
from pkgrepo.repositories.search_index import Entry, facet, join_text
from pkgrepo.storage.catalog import index_documents, usage_counts
from pkgrepo.storage.catalog.packages import packages

ROW: Final = "npm.row"  # the kind of fragment of a row
LISTED: Final = "npm.listed"  # the kind of fragment of a package's member in ``/-/all``
MOST_KEYWORDS: Final = 50
LONGEST_TEXT: Final = 500  # characters of a description

# The facets of a package.
AUTHOR, KEYWORD, MAINTAINER, SCOPE, STAR = "author", "keyword", "maintainer", "scope", "star"

encode_row = msgspec.json.Encoder().encode
_MOST_POPULAR: Final = 6.0  # log10 of the downloads at which popularity is 1
_encode = msgspec.json.Encoder().encode


@frozen
class Person:
    """A maintainer or publisher of a package."""

    name: str
    email: str = ""


@frozen
class Row:
    """
    The data of a package that search needs, taken from its latest version.

    ``version``, ``date`` and ``publisher`` are always set: npm prints nonsense without them.
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
    stars: Sequence[str] = ()  # names of the users who starred it
    links: dict[str, str] = field(factory=dict)
    downloads: int = 0
    deprecated: bool = False


read_row = msgspec.json.Decoder(Row).decode


def make_row(package: Package, latest: Version, *, deprecated: bool) -> Row:
    """The row of a package, from its latest version."""
    meta = latest.meta
    return Row(
        name=package.name,
        version=latest.text,
        date=latest.published_at,
        publisher=_person(meta.get("_npmUser"), latest.publisher),
        description=_text(meta.get("description"))[:LONGEST_TEXT],
        keywords=_keywords(meta.get("keywords")),
        author=_text_or_member(meta.get("author"), "name"),
        license=_text_or_member(meta.get("license"), "type"),
        maintainers=[_person(each, "") for each in package.meta.get("maintainers", ())],
        stars=sorted(package.meta.get("users", ())),
        links=_links(meta),
        deprecated=deprecated,
    )


def read_entry(key: str, body: bytes, downloads: int) -> Entry:
    """The entry of a package in the search index, from its row."""
    row = read_row(body)
    facets = {
        facet(SCOPE, names.split_scope(row.name)[0].lower()),
        *(facet(KEYWORD, each.lower()) for each in row.keywords),
        *(facet(MAINTAINER, each.name.lower()) for each in row.maintainers),
        *(facet(STAR, each) for each in row.stars),
        facet(AUTHOR, row.author.lower()),
    }
    return Entry(
        key=key,
        text=join_text(row.name, row.keywords, row.description),
        facets="".join(sorted(facets)),
        deprecated=row.deprecated,
        downloads=downloads,
    )


def read_rows(reader: Reader, repository_id: int, keys: Iterable[str]) -> list[Row]:
    """The rows of packages in the order of ``keys``, with their downloads. Removed packages are left out."""
    found: list[Row] = []
    for key in keys:
        package = packages.find_package(reader, repository_id, key)
        body = None if package is None else index_documents.find_fragment(reader, package.id, ROW, b"", "")
        if package is not None and body is not None:
            count = usage_counts.downloads_of_package(reader, package.id)
            found.append(evolve(read_row(body), downloads=count))
    return found


def _person(value: Any, default: str) -> Person:
    if not isinstance(value, dict):
        return Person(name=default)
    return Person(name=_text(value.get("name")) or default, email=_text(value.get("email")))


def _keywords(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.replace(",", " ").split()[:MOST_KEYWORDS]
    return [each for each in value if isinstance(each, str)][:MOST_KEYWORDS] if isinstance(value, list) else []


def _links(meta: Mapping[str, Any]) -> dict[str, str]:
    """The links of a package that are web addresses."""
    found = {
        "homepage": _text(meta.get("homepage")),
        "repository": _text_or_member(meta.get("repository"), "url"),
        "bugs": _text_or_member(meta.get("bugs"), "url"),
    }
    cleaned = {name: url.removeprefix("git+").removesuffix(".git") for name, url in found.items()}
    return {name: url for name, url in cleaned.items() if url.startswith(("https://", "http://"))}


def _text_or_member(value: Any, key: str) -> str:
    """A text that may also be written as an object with the text at ``key``."""
    return _text(value.get(key) if isinstance(value, dict) else value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def render_response(results: Sequence[tuple[float, Row]], total: int, now: datetime, base_url: str) -> dict[str, Any]:
    """The document of a search's results; ``base_url`` is the repository's address without a slash at the end."""
    return {"objects": [_object(*each, base_url) for each in results], "total": total, "time": format_time(now)}


def render_member(row: Row) -> bytes:
    """The member of a package in the object at ``/-/all``."""
    listed = {
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
    return b"%b:%b" % (_encode(row.name), _encode(listed))


def _object(score: float, row: Row, base_url: str) -> dict[str, Any]:
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
        "publisher": _person_record(row.publisher),
        "maintainers": [_person_record(each) for each in row.maintainers],
    }
    if row.author:
        package["author"] = {"name": row.author}
    if row.license:
        package["license"] = row.license
    return {
        "package": package,
        "score": {
            "final": round(score, 3),
            "detail": {
                "quality": 0.5 if row.deprecated else 1.0,
                "popularity": round(popularity, 3),
                "maintenance": 1.0,
            },
        },
        "searchScore": round(score, 3),
        "flags": {"insecure": 0, **({"deprecated": True} if row.deprecated else {})},
    }


def _person_record(person: Person) -> dict[str, str]:
    return {"username": person.name, "email": person.email}
