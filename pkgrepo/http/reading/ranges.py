"""The grammars of byte ranges: what a GET asks for (RFC 9110 section 14), and what a chunk of an upload brings."""

from __future__ import annotations

import re

from attrs import frozen

_MOST_DIGITS = 18  # of a position
_REQUESTED = re.compile(rb"bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*", re.IGNORECASE)
# Uploads write ``0-99`` without a unit (OCI distribution 1.1, "Pushing a blob in chunks"). Some clients write it as a
# response would, with the unit before it and the total behind.
_CHUNK = re.compile(rb"(?:bytes[ =])?([0-9]{1,18})-([0-9]{1,18})(?:/(?:[0-9]{1,18}|\*))?")


class UnsatisfiableError(Exception):
    """No byte of the content is in the range."""


def parse_range(value: bytes, size: int) -> tuple[int, int] | None:
    """
    The start and the end (exclusive) of what a Range header asks of ``size`` bytes.

    None for several ranges and for those that are no byte ranges: they get the whole content, as the RFC allows.

    :raises UnsatisfiableError: the range has no byte
    """
    match = _REQUESTED.fullmatch(value)
    if match is None or len(value) > 2 * _MOST_DIGITS:
        return None
    first, last = match.groups()
    if first:
        if last and int(last) < int(first):
            raise UnsatisfiableError  # section 14.2: an invalid range may be rejected, and OCI's suite wants it so
        start, end = int(first), min(int(last) + 1, size) if last else size
    elif last:
        start, end = max(size - int(last), 0), size
    else:
        return None
    if start >= end:
        raise UnsatisfiableError
    return start, end


@frozen
class ChunkRange:
    """Where a chunk of an upload begins, and how long it is, in bytes."""

    start: int
    length: int


def parse_chunk_range(value: bytes) -> ChunkRange:
    """The range of a chunk, both ends inclusive. :raises ValueError: it is malformed"""
    match = _CHUNK.fullmatch(value.strip())
    if match is None or int(match[2]) < int(match[1]):
        raise ValueError("Content-Range of a chunk is written first-last, as in 0-99")
    return ChunkRange(int(match[1]), int(match[2]) - int(match[1]) + 1)


def render_received(size: int) -> bytes:
    """The Range header of a response that says that ``size`` bytes have arrived; nothing yet is ``0-0`` too."""
    return b"0-%d" % max(size - 1, 0)
