"""
A writer of Ruby's Marshal format, version 4.8, for the values that gemspecs and lists of gems have.

A stream is the two bytes of the version and one value. A symbol is written with its name where it is first used, and
then as its number, counted in each stream from 0. Objects that occur twice are written twice: links between them are
optional. Ruby documents the format in ``doc/marshal.rdoc``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

VERSION: Final = b"\x04\x08"
NIL: Final = b"0"
TRUE: Final = b"T"
FALSE: Final = b"F"

_MICROSECOND_FORMAT: Final = 1 << 31  # of a dumped Time: fields of a calendar date, see time.c of Ruby
_UTC: Final = 1 << 30
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = _FIRST_YEAR + 0xFFFF


def integer(number: int) -> bytes:
    """
    A number without its type, as lengths and integers have it.

    :raises OverflowError: it does not fit into 30 bits, as in Ruby's own integers of this form
    """
    if not -(1 << 30) <= number < 1 << 30:
        raise OverflowError(f"{number} is no Marshal fixnum")
    if number == 0:
        return b"\x00"
    if 0 < number <= 122:
        return bytes((number + 5,))
    if -123 <= number < 0:
        return bytes(((number - 5) & 255,))
    count = next(size for size in range(1, 5) if -(1 << 8 * size) <= number < 1 << 8 * size)
    head = count if number > 0 else 256 - count
    return bytes((head,)) + (number & ((1 << 8 * count) - 1)).to_bytes(count, "little")


def counted(data: bytes) -> bytes:
    """Bytes after their length."""
    return integer(len(data)) + data


def array(values: Sequence[bytes]) -> bytes:
    """An array of values that are written already, in their order in the stream."""
    return b"[" + integer(len(values)) + b"".join(values)


class Stream:
    """The values of one stream; each method returns a value's bytes, and they must be joined in the order of calls."""

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self._symbols = {name: number for number, name in enumerate(symbols)}

    def symbol(self, name: str) -> bytes:
        """A symbol."""
        number = self._symbols.get(name)
        if number is not None:
            return b";" + integer(number)
        self._symbols[name] = len(self._symbols)
        return b":" + counted(name.encode())

    def string(self, text: str) -> bytes:
        """A string in UTF-8."""
        return b'I"' + counted(text.encode()) + integer(1) + self.symbol("E") + TRUE

    def optional_string(self, text: str | None) -> bytes:
        """A string, or nil."""
        return NIL if text is None else self.string(text)

    def strings(self, texts: Sequence[str]) -> bytes:
        """An array of strings."""
        return array([self.string(text) for text in texts])

    def string_map(self, pairs: Mapping[str, str]) -> bytes:
        """A hash of strings."""
        values = [self.string(text) for pair in pairs.items() for text in pair]
        return b"{" + integer(len(pairs)) + b"".join(values)

    def utc_day(self, day: dt.date) -> bytes:
        """A Time: midnight of a day, UTC. A year that the form cannot express becomes the nearest one that it can."""
        year = min(max(day.year, _FIRST_YEAR), _LAST_YEAR) - _FIRST_YEAR
        first = _MICROSECOND_FORMAT | _UTC | year << 14 | (day.month - 1) << 10 | day.day << 5
        data = first.to_bytes(4, "little") + bytes(4)
        zone = b'I"' + counted(b"UTC")
        return b"".join(
            (
                b"Iu",
                self.symbol("Time"),
                counted(data),
                integer(1),
                self.symbol("zone"),
                zone,
                integer(1),
                self.symbol("E"),
                FALSE,  # US-ASCII
            )
        )

    def version(self, number: str) -> bytes:
        """A Gem::Version."""
        return b"U" + self.symbol("Gem::Version") + b"[" + integer(1) + self.string(number)

    def requirement(self, pairs: Sequence[tuple[str, str]]) -> bytes:
        """A Gem::Requirement, from pairs of operator and version number."""
        head = b"U" + self.symbol("Gem::Requirement") + b"[" + integer(1)
        return head + array([b"[" + integer(2) + self.string(sign) + self.version(number) for sign, number in pairs])

    def object_head(self, name: str, variables: int) -> bytes:
        """The start of an object, which its variables follow: a symbol and a value each."""
        return b"o" + self.symbol(name) + integer(variables)
