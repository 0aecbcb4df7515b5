"""Renders the results of a search, ``/-/v1/search``, and the members of the list of all packages, ``/-/all``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.rendering import format_time

from .rows import Person, Row

_MOST_POPULAR: Final = 6.0  # log10 of the downloads at which popularity is 1

_encode = msgspec.json.Encoder().encode


def render_answer(results: Sequence[tuple[float, Row]], total: int, now: datetime, base_url: str) -> dict[str, Any]:
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


def _person(person: Person) -> dict[str, str]:
    return {"username": person.name, "email": person.email}
