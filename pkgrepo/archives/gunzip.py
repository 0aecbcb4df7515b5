"""Streaming decompression of gzip files (RFC 1952), with a limit on the decompressed size."""

from __future__ import annotations

import zlib

from .limits import PIECE, unpacked_budget
from .source import Source

MOST_STREAMS = 1000  # gzip streams in one file; even an empty one costs time


class Gunzip:
    """
    Reads the decompressed bytes of a gzip file in order.

    The contents of several gzip streams in one file are concatenated, as gzip does. Zero bytes after the last stream
    are padding.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._budget = unpacked_budget(source)
        self._at = 0
        self._streams = 1
        self._compressed = b""
        self._decompressed = memoryview(b"")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def read(self, count: int) -> bytes:
        """
        The next ``count`` bytes; fewer at the end of the data.

        :raises Invalid: the file is damaged or truncated, or its decompressed size exceeds the limit
        """
        parts: list[memoryview] = []
        while count > 0 and (self._decompressed or self._fill()):
            part, self._decompressed = self._decompressed[:count], self._decompressed[count:]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes. Returns the number of bytes skipped, which is smaller at the end of the data."""
        left = count
        while left > 0 and (self._decompressed or self._fill()):
            taken = min(left, len(self._decompressed))
            self._decompressed = self._decompressed[taken:]
            left -= taken
        return count - left

    def only_zeros_follow(self) -> bool:
        """Whether all remaining bytes are zero. Reads to the first other byte, or to the end."""
        while self._decompressed or self._fill():
            if self._decompressed.tobytes().strip(b"\x00"):  # any() takes 1000 times as long
                return False
            self._decompressed = memoryview(b"")
        return True

    def _fill(self) -> bool:
        """Decompress the next piece; False at the end."""
        while True:
            if self._inflater.eof and not self._next_stream():
                return False
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
                self._budget -= len(piece)
                if self._budget < 0:
                    raise self._source.refuse(
                        f"would unpack to more than {unpacked_budget(self._source)} bytes, far more than it is packed"
                    )
                self._decompressed = memoryview(piece)
                return True

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
