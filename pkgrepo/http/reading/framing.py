"""Where a request body ends."""

from __future__ import annotations

from collections.abc import Callable

from .chunks import Chunks, MalformedChunks

__all__ = ["BodyFraming", "MalformedChunks"]


class BodyFraming:
    """
    Takes the framing off a body: counts up to its length, or decodes its chunks.

    ``remaining`` is how many bytes are still to come, None when the client sends chunks.
    """

    def __init__(self, length: int | None, feed: Callable[[bytes], None]) -> None:
        self.remaining = length
        self.ended = False
        self._feed = feed
        self._chunks = Chunks() if length is None else None

    def take(self, data: bytes) -> bytes:
        """
        Feed what of ``data`` belongs to the body; what is beyond its end comes back.

        :raises MalformedChunks: the chunks cannot be told apart, or are far too small
        """
        if self._chunks is not None:
            return self._take_chunks(self._chunks, data)
        assert self.remaining is not None
        if len(data) < self.remaining:
            self.remaining -= len(data)
            self._feed(data)
            return b""
        count, self.remaining = self.remaining, 0
        self.ended = True
        self._feed(data if len(data) == count else data[:count])
        return data[count:]

    def _take_chunks(self, chunks: Chunks, data: bytes) -> bytes:
        pieces: list[memoryview | bytes] = []
        try:
            end = chunks.take(data, pieces)
        finally:
            if len(pieces) == 1 and len(pieces[0]) == len(data):
                self._feed(data)
            elif pieces:
                # In one piece: kept one by one, chunks of a byte would take fifty times their size.
                self._feed(b"".join(pieces))
        self.ended = chunks.ended
        return data[end:] if self.ended else b""
