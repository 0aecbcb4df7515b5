"""Where a request body ends."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.http._twisted import ChunkedDecoder, MalformedChunks

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
        self._rest = b""
        self._decoder = ChunkedDecoder(feed, self._end) if length is None else None

    def take(self, data: bytes) -> bytes:
        """
        Feed what of ``data`` belongs to the body; what is beyond its end comes back.

        :raises MalformedChunks: the chunks cannot be told apart
        """
        if self._decoder is not None:
            self._decoder.dataReceived(data)
            return self._rest
        assert self.remaining is not None
        if len(data) < self.remaining:
            self.remaining -= len(data)
            self._feed(data)
            return b""
        count, self.remaining = self.remaining, 0
        self.ended = True
        self._feed(data if len(data) == count else data[:count])
        return data[count:]

    def _end(self, rest: bytes) -> None:
        self.ended = True
        self._rest = rest
