"""What search knows of a package, kept beside its documents and renewed with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Version
from pkgrepo.storage.catalog import documents

from .search import Person, Query, Row

ROW: Final = "npm.row"  # the kind of its fragment
MOST_ROWS: Final = 100_000  # looked at for one search; beyond that words must narrow it down
MOST_KEYWORDS: Final = 50
LONGEST_TEXT: Final = 500  # characters of a description

_decode = msgspec.json.Decoder(Row).decode
encode_row = msgspec.json.Encoder().encode


def make_row(package: Package, latest: Version, *, deprecated: bool) -> Row:
    """The row of a package, told of its latest version."""
    meta = latest.meta
    return Row(
        name=package.name,
        version=latest.text,
        date=latest.published_at,
        publisher=_person(meta.get("_npmUser"), latest.publisher),
        description=_text(meta.get("description"))[:LONGEST_TEXT],
        keywords=_keywords(meta.get("keywords")),
        author=_name(meta.get("author")),
        license=_license(meta.get("license")),
        maintainers=[_person(each, "") for each in package.meta.get("maintainers", ())],
        stars=sorted(package.meta.get("users", ())),
        links=_links(meta),
        deprecated=deprecated,
    )


def read_rows(reader: Reader, repository_id: int, query: Query | None) -> list[Row]:
    """The rows of a repository; with a query, only those that may fit it."""
    words = () if query is None else tuple(filter(_is_plain, query.words))
    parts = documents.parts_of_repository(reader, repository_id, ROW, words=words, limit=MOST_ROWS)
    return [evolve(_decode(body), downloads=downloads) for _, downloads, body in parts]


def _is_plain(word: str) -> bool:
    """Whether a word stands in JSON as it is, so that the catalog can look for it."""
    return word.isascii() and word.isprintable() and '"' not in word and "\\" not in word


def _person(value: Any, default: str) -> Person:
    if not isinstance(value, dict):
        return Person(name=default)
    return Person(name=_text(value.get("name")) or default, email=_text(value.get("email")))


def _keywords(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.replace(",", " ").split()[:MOST_KEYWORDS]
    return [each for each in value if isinstance(each, str)][:MOST_KEYWORDS] if isinstance(value, list) else []


def _links(meta: Mapping[str, Any]) -> dict[str, str]:
    """Addresses that a browser may be sent to."""
    repository, bugs = meta.get("repository"), meta.get("bugs")
    found = {
        "homepage": meta.get("homepage"),
        "repository": repository.get("url") if isinstance(repository, dict) else repository,
        "bugs": bugs.get("url") if isinstance(bugs, dict) else bugs,
    }
    cleaned = {name: _text(url).removeprefix("git+").removesuffix(".git") for name, url in found.items()}
    return {name: url for name, url in cleaned.items() if url.startswith(("https://", "http://"))}


def _license(value: Any) -> str:
    return _text(value.get("type")) if isinstance(value, dict) else _text(value)


def _name(value: Any) -> str:
    return _text(value.get("name")) if isinstance(value, dict) else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
