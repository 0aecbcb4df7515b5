"""
Header fields of requests and responses, parsed strictly (RFC 9110 section 5, RFC 9112 section 5).

Bare CR or LF, other control bytes, folded lines and blanks before a colon are refused: two programs may read them
differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NOT_CONTROL = b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))


class MalformedField(Exception):  # noqa: N818 - named for what was found
    """A line is folded, or its name is not a token followed by a colon."""


def has_controls(raw: bytes, line_ends: int) -> bool:
    """Return whether a head has other control bytes than this number of CR LF."""
    return raw.translate(None, _NOT_CONTROL) != b"\r\n" * line_ends


def parse_lines(rows: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """
    Return the names, as they were sent, and the values of lines without their line ends.

    :raises MalformedField: a line is no field
    """
    lines: list[tuple[bytes, bytes]] = []
    for row in rows:
        name, colon, value = row.partition(b":")
        if not colon or not name or name.translate(None, TOKEN):
            raise MalformedField
        lines.append((name, value.strip(b" \t")))
    return lines


def join_lines(lines: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return values by lower-case name; lines of one name are joined by a comma (RFC 9110 section 5.3)."""
    values: dict[bytes, bytes] = {}
    for sent, value in lines:
        name = sent.lower()
        values[name] = values[name] + b", " + value if name in values else value
    return values


def connection_options(fields: Mapping[bytes, bytes]) -> Sequence[bytes]:
    """Return the options of the field Connection in lower case."""
    options = fields.get(b"connection")
    return () if options is None else [each.strip() for each in options.lower().split(b",")]
