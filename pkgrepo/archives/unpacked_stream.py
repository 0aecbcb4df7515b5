"""The decompressed bytes of an archive as a stream, with a limit on their number."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .limits import unpacked_budget
from .source import Source


class UnpackedStream(ABC):
    """
    Reads decompressed bytes in order. A subclass decompresses them piece by piece.

    They are at most ``most`` bytes; by default as many as L{unpacked_budget} allows.
    """

    def __init__(self, source: Source, most: int | None = None) -> None:
        self._source = source
        self._most = unpacked_budget(source) if most is None else most
        self._budget = self._most
        self._decompressed = memoryview(b"")

    @abstractmethod
    def _next_piece(self) -> bytes:
        """
        The next decompressed bytes, at most ``PIECE``; empty at the end.

        :raises Invalid: the file is damaged or truncated
        """

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
        piece = self._next_piece()
        self._budget -= len(piece)
        if self._budget < 0:
            raise self._source.refuse(f"would unpack to more than {self._most} bytes, far more than it is packed")
        self._decompressed = memoryview(piece)
        return bool(piece)
