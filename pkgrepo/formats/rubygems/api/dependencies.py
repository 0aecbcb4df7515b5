"""
The dependencies of all versions of some gems, which Bundler asks for where it finds no compact index.

The answer is an array of hashes in Ruby's Marshal format, or the same in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pkgrepo.formats.rubygems.legacy.marshal import VERSION, Stream, array, integer

from .records import Release

Row = Mapping[str, Any]


def dependency_rows(releases: Iterable[Release]) -> list[Row]:
    """A row for each version: its name, number and platform, and pairs of name and requirement."""
    return [
        {
            "name": each.spec.name,
            "number": each.spec.number,
            "platform": each.spec.platform,
            "dependencies": [
                [needed.name, ", ".join(f"{operator} {bound}" for operator, bound in needed.requirement)]
                for needed in each.spec.runtime_dependencies
            ],
        }
        for each in releases
    ]


def marshal_rows(rows: Sequence[Row]) -> bytes:
    """The rows as a Marshal stream."""
    stream = Stream()
    return VERSION + array([_row(stream, each) for each in rows])


def _row(stream: Stream, row: Row) -> bytes:
    parts = [b"{" + integer(len(row))]
    for key, value in row.items():
        parts.append(stream.symbol(key))
        if isinstance(value, str):
            parts.append(stream.string(value))
        else:
            parts.append(array([stream.strings(pair) for pair in value]))
    return b"".join(parts)
