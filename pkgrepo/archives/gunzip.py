"""Streaming decompression of gzip files (RFC 1952), with a limit on the decompressed size."""

from __future__ import annotations

import zlib

from .limits import PIECE
from .source import Source
from .unpacked_stream import UnpackedStream

MOST_STREAMS = 1000  # gzip streams in one file; even an empty one costs time


class Gunzip(UnpackedStream):
    """
    Reads the decompressed bytes of a gzip file in order.

    The contents of several gzip streams in one file are concatenated, as gzip does. Zero bytes after the last stream
    are padding.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._at = 0
        self._streams = 1
        self._compressed = b""
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _next_piece(self) -> bytes:
        while True:
            if self._inflater.eof and not self._next_stream():
                return b""
            if not self._compressed:
                self._compressed = self._read_more()
                if not self._compressed:
                    raise self._source.refuse("is truncated")
            try:
                piece = self._inflater.decompress(self._compressed, PIECE)
            except zlib.error:
                raise self._source.refuse("is damaged, or not a gzip archive") from None
            self._compressed = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if piece:
                return piece

    def _next_stream(self) -> bool:
        """Start the next gzip stream of the file; False if there is none."""
        while not (rest := self._compressed.lstrip(b"\x00")):
            self._compressed = self._read_more()
            if not self._compressed:
                return False
        self._compressed = rest
        if len(rest) == 1:
            self._compressed += self._read_more()
        if not self._compressed.startswith(b"\x1f\x8b"):
            raise self._source.refuse("has data after the end of its gzip archive")
        self._streams += 1
        if self._streams > MOST_STREAMS:
            raise self._source.refuse(f"is made of more than {MOST_STREAMS} gzip streams")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return True

    def _read_more(self) -> bytes:
        data = self._source.read(self._at, min(PIECE, self._source.size - self._at))
        self._at += len(data)
        return data
