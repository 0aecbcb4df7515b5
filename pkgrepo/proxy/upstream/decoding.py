"""Content codings of answers (RFC 9110 section 8.4.1): gzip in small pieces, within limits."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024  # bytes that are inflated at once
FREE_SIZE = 16 * 1024 * 1024  # bytes; up to this size any ratio is allowed
MOST_RATIO = 250  # real index documents reach 50; zlib's highest is 1032
MOST_MEMBERS = 1000  # gzip members in one body


class BadCoding(Exception):  # noqa: N818 - named for what happened
    """The body cannot be decoded; ``args[0]`` is the reason, a clause for people."""


class Inflater:
    """Inflates a gzip body (RFC 1952) piece by piece."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._sent = 0
        self._inflated = 0
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        """
        The decoded bytes of ``data``, in pieces of at most L{PIECE} bytes.

        :raises BadCoding: it is no gzip, or its ratio is that of an attack
        """
        self._sent += len(data)
        while data:
            if self._inflater.eof:
                self._next_member()
            try:
                piece = self._inflater.decompress(data, PIECE)
            except zlib.error:
                raise BadCoding("its answer is not in gzip, as it says") from None
            data = self._inflater.unused_data or self._inflater.unconsumed_tail
            self._inflated += len(piece)
            if self._inflated > max(FREE_SIZE, self._sent * MOST_RATIO):
                raise BadCoding(f"its answer inflates to more than {MOST_RATIO} times its size")
            if piece:
                yield piece

    def end(self) -> None:
        """Check that the last member is complete; no bytes at all are, too. :raises BadCoding: it is not"""
        if self._sent and not self._inflater.eof:
            raise BadCoding("its answer ends within compressed data")

    def _next_member(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BadCoding("its answer has too many gzip members")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)


def make_inflater(encodings: list[str]) -> Inflater | None:
    """
    What decodes a body with these Content-Encoding values; None: nothing needs to be done.

    :raises BadCoding: it is another coding than gzip, which we did not ask for
    """
    names = [name.strip().lower() for value in encodings for name in value.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not names:
        return None
    if names not in (["gzip"], ["x-gzip"]):
        raise BadCoding("its answer has a coding that was not asked for")
    return Inflater()
