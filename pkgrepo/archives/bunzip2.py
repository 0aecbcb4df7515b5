"""Streaming decompression of bzip2 files, with limits on the bytes before and after."""

from __future__ import annotations

import bz2

from .limits import PIECE
from .source import Source
from .unpacked_stream import UnpackedStream

MOST_STREAMS = 1000  # bzip2 streams in one file; parallel compressors write one for each 900 KB


class Bunzip2(UnpackedStream):
    """
    Reads the decompressed bytes of a bzip2 file in order; several streams are concatenated, as bzip2 does.

    A megabyte takes 60 ms, so that callers say how much may be read: ``most_packed`` bytes of the file, and ``most``
    bytes after decompression.
    """

    def __init__(self, source: Source, *, most_packed: int, most: int) -> None:
        super().__init__(source, most)
        self._most_packed = most_packed
        self._at = 0
        self._streams = 1
        self._compressed = b""
        self._decompressor = bz2.BZ2Decompressor()

    def _next_piece(self) -> bytes:
        while True:
            if self._decompressor.eof and not self._next_stream():
                return b""
            if self._decompressor.needs_input and not self._compressed:
                self._compressed = self._read_more()
                if not self._compressed:
                    raise self._source.refuse("is truncated")
            data, self._compressed = self._compressed, b""
            try:
                piece = self._decompressor.decompress(data, PIECE)
            except OSError:
                raise self._source.refuse("is damaged, or not a bzip2 archive") from None
            if piece:
                return piece

    def _next_stream(self) -> bool:
        """Start the next stream of the file; False at its end."""
        self._compressed = self._decompressor.unused_data or self._read_more()
        if not self._compressed:
            return False
        self._streams += 1
        if self._streams > MOST_STREAMS:
            raise self._source.refuse(f"is made of more than {MOST_STREAMS} bzip2 streams")
        self._decompressor = bz2.BZ2Decompressor()
        return True

    def _read_more(self) -> bytes:
        data = self._source.read(self._at, min(PIECE, self._source.size - self._at))
        self._at += len(data)
        if self._at - len(data) >= self._most_packed:
            raise self._source.refuse(f"has what is looked for not within its first {self._most_packed} bytes")
        return data
