"""
A decoder of the chunked transfer coding (RFC 9112 section 7.1).

=========  ============================================  ==================================
state      the input is                                  left by
=========  ============================================  ==================================
SIZE       a line with the next chunk's size             a size (DATA), zero (TRAILER)
DATA       the chunk's bytes                             the last of them (CLOSING)
CLOSING    the line end after them                       it (SIZE)
TRAILER    fields after the last chunk, discarded        an empty line (ENDED)
ENDED      beyond the body
=========  ============================================  ==================================

What two programs on the way might read differently is refused, so that no request can be smuggled in a body: sizes
with a sign or a blank, bare line feeds, chunks that are longer than their size.
"""

from __future__ import annotations

import re
from enum import Enum

FREE_BYTES = 1024 * 1024  # of a body may come in chunks of any size, since some programs flush each line
LEAST_AVERAGE = 16  # bytes in a chunk of a longer body; a chunk of any size costs a microsecond
LINE_LIMIT = 1024  # bytes of a size with its extensions
TRAILER_LIMIT = 64 * 1024  # bytes of all fields after the body

_SMALL = {b"%x" % size: size for size in range(1, 64)}
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")


class MalformedChunks(Exception):  # noqa: N818 - named for what happened
    """The chunks are malformed, or far too small."""


class State(Enum):
    """See the module's table."""

    SIZE = 1
    DATA = 2
    CLOSING = 3
    TRAILER = 4
    ENDED = 5


SIZE, DATA, CLOSING, TRAILER, ENDED = State


class ChunkDecoder:
    """Decodes one body. ``ended`` says that the last chunk and the trailer are complete."""

    def __init__(self) -> None:
        self.ended = False
        self._state = SIZE
        self._left = 0  # bytes of the present chunk
        self._line = b""  # the beginning of an incomplete line
        self._count = 0
        self._decoded = 0
        self._trailer = 0

    def decode(self, data: bytes, pieces: list[memoryview | bytes]) -> int:
        """
        Append the decoded content of ``data`` to ``pieces``; returns how much of ``data`` belongs to the body.

        :raises MalformedChunks: the content before the fault is among the pieces
        """
        view = memoryview(data)
        at, size = 0, len(data)
        while at < size and not self.ended:
            if self._state is DATA:
                piece = view[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = CLOSING
                continue
            if self._state is SIZE and not self._line:
                at = self._decode_small(data, at, pieces)
            end = data.find(b"\n", at)
            if end < 0:
                self._keep_line(data[at:])
                return size
            line = self._line + data[at:end]
            self._line = b""
            at = end + 1
            self._read_line(line)
        return at

    def _keep_line(self, part: bytes) -> None:
        """Keep an incomplete line, unless it is malformed already."""
        line = self._line = self._line + part
        if self._state is CLOSING and line != b"\r":
            raise MalformedChunks("a chunk is longer than it says")
        if len(line) > (TRAILER_LIMIT - self._trailer if self._state is TRAILER else LINE_LIMIT):
            raise MalformedChunks("a line between them is too long")

    def _read_line(self, line: bytes) -> None:
        if not line.endswith(b"\r") or line.find(b"\r") != len(line) - 1:
            raise MalformedChunks("a line between them does not end with CR LF")
        if self._state is SIZE:
            self._begin_chunk(line[:-1])
        elif len(line) == 1:
            self._state = SIZE if self._state is CLOSING else ENDED
            self.ended = self._state is ENDED
        elif self._state is CLOSING:
            raise MalformedChunks("a chunk is longer than it says")
        else:
            self._trailer += len(line) + 1
            if self._trailer > TRAILER_LIMIT:
                raise MalformedChunks("the fields after them are too long")

    def _begin_chunk(self, line: bytes) -> None:
        found = _SIZE.fullmatch(line)
        if found is None or len(line) > LINE_LIMIT:
            raise MalformedChunks("a size is no number")
        self._left = int(found[1], 16)
        if not self._left:
            self._state = TRAILER
            return
        self._state = DATA
        self._count_chunks(1, self._left)

    def _decode_small(self, data: bytes, at: int, pieces: list[memoryview | bytes]) -> int:
        """Decode small complete chunks, at a tenth of the cost of the states; returns where the next one begins."""
        count = decoded = 0
        while True:
            end = data.find(b"\r\n", at, at + 4)
            size = _SMALL.get(data[at:end]) if end > 0 else None
            if size is None:
                break
            after = end + 2 + size
            if data[after : after + 2] != b"\r\n":
                break
            pieces.append(data[end + 2 : after])
            at = after + 2
            count += 1
            decoded += size
        if count:
            self._count_chunks(count, decoded)
        return at

    def _count_chunks(self, count: int, decoded: int) -> None:
        self._count += count
        self._decoded += decoded
        if self._decoded > FREE_BYTES and self._decoded < LEAST_AVERAGE * self._count:
            raise MalformedChunks(f"they are smaller than {LEAST_AVERAGE} bytes on average")
