"""The framing of a request body: its length, or the chunked coding."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.untrusted.chunks import ChunkDecoder, MalformedChunks

__all__ = ["BodyFraming", "MalformedChunks"]


class BodyFraming:
    """
    Counts a body's bytes up to its length, or decodes its chunks.

    ``remaining`` is how many bytes are still to come, None for the chunked coding.
    """

    def __init__(self, length: int | None, feed: Callable[[bytes], None]) -> None:
        self.remaining = length
        self.ended = False
        self._feed = feed
        self._chunks = ChunkDecoder() if length is None else None

    def take(self, data: bytes) -> bytes:
        """
        Feed the part of ``data`` that belongs to the body; returns what is beyond its end.

        :raises MalformedChunks: the chunks are malformed, or far too small
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

    def _take_chunks(self, chunks: ChunkDecoder, data: bytes) -> bytes:
        pieces: list[memoryview | bytes] = []
        try:
            end = chunks.decode(data, pieces)
        finally:
            if len(pieces) == 1 and len(pieces[0]) == len(data):
                self._feed(data)
            elif pieces:
                # Joined: kept one by one, chunks of a byte would take fifty times their size.
                self._feed(b"".join(pieces))
        self.ended = chunks.ended
        return data[end:] if self.ended else b""
