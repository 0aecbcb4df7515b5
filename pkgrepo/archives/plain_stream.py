"""Reads a file that is not compressed as a stream, as ``gunzip`` reads a compressed one."""

from __future__ import annotations

from .limits import PIECE
from .source import Source


class PlainStream:
    """Reads the bytes of a file in order."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    @property
    def position(self) -> int:
        """The offset of the next byte in the file."""
        return self._at

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes; fewer at the end of the file."""
        data = self._source.read(self._at, min(count, self._source.size - self._at))
        self._at += len(data)
        return data

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes. Returns the number of bytes skipped, which is smaller at the end of the file."""
        skipped = min(count, self._source.size - self._at)
        self._at += skipped
        return skipped

    def only_zeros_follow(self) -> bool:
        """Whether all remaining bytes are zero. Reads to the first piece with another byte, or to the end."""
        while piece := self.read(PIECE):
            if piece.strip(b"\x00"):
                return False
        return True
