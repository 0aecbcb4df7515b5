"""
The rows of the lists ``specs.4.8``, ``latest_specs.4.8`` and ``prerelease_specs.4.8``: name, version and platform.

A list is an array of rows in one stream, in which only the first row names its two symbols. So a list is made by
joining rows that were written before, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.names import RUBY, full_version, is_full_version, is_name

from .marshal import TRUE, VERSION, Stream, counted, integer
from .unmarshal import read_array

# The kinds of the fragments that have the rows of a gem's live versions, in the order of versions.
RELEASE: Final = "release"
PRERELEASE: Final = "prerelease"

# The symbols of every list, in the order of their first use.
_SYMBOLS: Final = ("E", "Gem::Version")
_NAMED: Final = tuple(Stream().symbol(name) for name in _SYMBOLS)
_NUMBERED: Final = tuple(Stream(_SYMBOLS).symbol(name) for name in _SYMBOLS)

# What is the same in all rows but the first: 200,000 rows through L{Stream} take 10 times as long.
_ROW: Final = b"[" + integer(3)
_VERSION: Final = b"U" + _NUMBERED[1] + b"[" + integer(1)
_AFTER_TEXT: Final = integer(1) + _NUMBERED[0] + TRUE


def list_row(name: str, number: str, platform: str) -> bytes:
    """The row of a gem in any place but the first one."""
    return b"".join((_ROW, _text(name), _VERSION, _text(number), _text(platform)))


def _text(text: str) -> bytes:
    return b'I"' + counted(text.encode()) + _AFTER_TEXT


def list_head(rows: int) -> bytes:
    """What stands before the rows of a list of this length."""
    return VERSION + b"[" + integer(rows)


def first_row(row: bytes) -> bytes:
    """A row in the form for the first place, which names the symbols that all others number."""
    # The name ends at the first symbol: names of gems contain no semicolon.
    return row.replace(_NUMBERED[0], _NAMED[0], 1).replace(b"U" + _NUMBERED[1], b"U" + _NAMED[1], 1)


def join_rows(rows: Sequence[bytes]) -> bytes:
    """A whole list."""
    if not rows:
        return list_head(0)
    return b"".join((list_head(len(rows)), first_row(rows[0]), *rows[1:]))


def read_rows(data: bytes) -> Iterator[tuple[str, str]]:
    """
    The gems of an uncompressed list, as pairs of name and full version. Blocks.

    What no client could install is left out, as a gem that has the name of no file.

    :raises Invalid: it is no such list
    """
    for row in read_array(data):
        match row:
            case [str(name), {"version": str(number)}, str() | None as platform]:
                version = full_version(number, platform or RUBY)
                if is_name(name) and is_full_version(version):
                    yield name, version
            case _:
                raise Invalid("it has a row that is not of a gem")
