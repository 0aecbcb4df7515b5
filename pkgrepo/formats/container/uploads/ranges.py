"""The ranges of upload requests, which are not those of HTTP: ``0-99`` without a unit, both ends inclusive."""

from __future__ import annotations

import re

from attrs import frozen

from pkgrepo.http.answering.answers import Refusal

# Some clients write it as a response would, with the unit before it and the total behind.
_RANGE = re.compile(rb"(?:bytes[ =])?([0-9]{1,18})-([0-9]{1,18})(?:/(?:[0-9]{1,18}|\*))?")


@frozen
class ChunkRange:
    """Where a chunk begins, and how long it is, in bytes."""

    start: int
    length: int


def parse_chunk_range(value: bytes | None) -> ChunkRange | None:
    """
    The range of a chunk, or None when the client leaves it to us.

    :raises Refusal: it is malformed
    """
    if value is None:
        return None
    match = _RANGE.fullmatch(value.strip())
    if match is None or int(match[2]) < int(match[1]):
        raise Refusal(400, "Content-Range of a chunk is written first-last, as in 0-99", "BLOB_UPLOAD_INVALID")
    return ChunkRange(int(match[1]), int(match[2]) - int(match[1]) + 1)


def render_received(count: int) -> bytes:
    """``count`` bytes as the Range field of an answer; nothing yet is ``0-0`` too."""
    return b"0-%d" % max(count - 1, 0)
