"""Long documents of an upstream that are kept as they are: cut into pieces, which are the fragments of a parts file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry

PIECE: Final = "piece"  # the kind of these fragments
HEAD: Final = "head"  # in ``top``: what comes before the first piece
LONGEST_PIECE: Final = 256 * 1024  # bytes


def cut_pieces(source: bytes, start: int = 0, *, lines: bool) -> Iterator[Entry]:
    """
    The bytes from ``start`` on as entries; with ``lines`` they end at line ends.

    :raises Invalid: a line is too long for that
    """
    number = 0
    while start < len(source):
        end = min(start + LONGEST_PIECE, len(source))
        if lines and end < len(source):
            end = source.rfind(b"\n", start, end) + 1
            if not end:
                raise Invalid("a line is too long")
        yield Entry(
            sort=number.to_bytes(8, "big"),
            key="",
            version="",
            published_ms=0,
            first_seen=False,
            fragments={PIECE: source[start:end]},
            files=[],
        )
        start, number = end, number + 1


def read_pieces(parts: PartsFile) -> Iterator[bytes]:
    """The bytes of the document, or of what was appended to it, several at a time."""
    head: str = parts.top.get(HEAD, "")
    if head:
        yield head.encode()
    for entry in parts.entries((PIECE,)):
        if PIECE in entry.fragments:
            yield entry.fragments[PIECE]
