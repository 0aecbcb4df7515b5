"""A reader of gzip files (RFC 1952) with a limit on the unpacked size."""

from __future__ import annotations

import zlib

from .limits import unpacked_budget
from .source import Source

PIECE = 256 * 1024  # bytes read, and unpacked, at once
MOST_STREAMS = 1000  # in one file; each costs time, even when it is empty


class Gunzip:
    """
    The unpacked bytes of a gzip file, in order.

    Several streams in one file count as one, as in gzip; zeros after the last one are padding.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._budget = unpacked_budget(source)
        self._at = 0
        self._streams = 1
        self._packed = b""
        self._ready = memoryview(b"")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def read(self, count: int) -> bytes:
        """
        ``count`` bytes, fewer only at the end.

        :raises Invalid: the stream is damaged or truncated, or unpacks to more than it may
        """
        parts: list[memoryview] = []
        while count > 0 and (self._ready or self._fill()):
            part, self._ready = self._ready[:count], self._ready[count:]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes; returns how many there were."""
        left = count
        while left > 0 and (self._ready or self._fill()):
            taken = min(left, len(self._ready))
            self._ready = self._ready[taken:]
            left -= taken
        return count - left

    def only_zeros_follow(self) -> bool:
        """Whether the rest is zeros; reads to the end."""
        while self._ready or self._fill():
            if self._ready.tobytes().strip(b"\x00"):  # any() takes a thousand times as long
                return False
            self._ready = memoryview(b"")
        return True

    def _fill(self) -> bool:
        """Unpack the next piece; False at the end."""
        while True:
            if self._inflater.eof and not self._next_stream():
                return False
            if not self._packed:
                self._packed = self._more()
                if not self._packed:
                    raise self._source.refuse("is truncated")
            try:
                piece = self._inflater.decompress(self._packed, PIECE)
            except zlib.error:
                raise self._source.refuse("is damaged, or not a gzip archive") from None
            self._packed = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if piece:
                self._budget -= len(piece)
                if self._budget < 0:
                    raise self._source.refuse(
                        f"would unpack to more than {unpacked_budget(self._source)} bytes, far more than it is packed"
                    )
                self._ready = memoryview(piece)
                return True

    def _next_stream(self) -> bool:
        """Begin the stream after the one that has ended; False if there is none."""
        while not (rest := self._packed.lstrip(b"\x00")):
            self._packed = self._more()
            if not self._packed:
                return False
        self._packed = rest
        if len(rest) == 1:
            self._packed += self._more()
        if not self._packed.startswith(b"\x1f\x8b"):
            raise self._source.refuse("has data after the end of its gzip archive")
        self._streams += 1
        if self._streams > MOST_STREAMS:
            raise self._source.refuse(f"is made of more than {MOST_STREAMS} gzip streams")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return True

    def _more(self) -> bytes:
        data = self._source.read(self._at, min(PIECE, self._source.size - self._at))
        self._at += len(data)
        return data
