"""Where a request body ends."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.http._twisted import ChunkedDecoder, MalformedChunks

__all__ = ["BodyFraming", "MalformedChunks"]

SLICE = 4096  # bytes decoded before the chunks are judged; of the smallest ones that is a millisecond of work
FREE_CHUNKS = 1000  # in a body; so many may be of any size
LEAST_AVERAGE = 16  # bytes in a chunk, beyond those; a chunk takes a microsecond or two, whatever is in it


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
        self._pieces: list[bytes] = []
        self._chunks = 0
        self._decoded = 0
        self._decoder = ChunkedDecoder(self._take_piece, self._end) if length is None else None

    def take(self, data: bytes) -> bytes:
        """
        Feed what of ``data`` belongs to the body; what is beyond its end comes back.

        :raises MalformedChunks: the chunks cannot be told apart, or are far too small
        """
        if self._decoder is not None:
            return self._take_chunks(data)
        assert self.remaining is not None
        if len(data) < self.remaining:
            self.remaining -= len(data)
            self._feed(data)
            return b""
        count, self.remaining = self.remaining, 0
        self.ended = True
        self._feed(data if len(data) == count else data[:count])
        return data[count:]

    def _take_chunks(self, data: bytes) -> bytes:
        assert self._decoder is not None
        at = 0
        try:
            while at < len(data) and not self.ended:
                before = len(self._pieces)
                self._decoder.dataReceived(data[at : at + SLICE])
                at += SLICE
                # One piece for each slice may belong to a chunk that was counted before.
                self._chunks += max(0, len(self._pieces) - before - 1)
                if self._chunks > FREE_CHUNKS and self._decoded < LEAST_AVERAGE * self._chunks:
                    raise MalformedChunks("they are far too small")
        finally:
            # In one piece: kept one by one, chunks of a byte would take fifty times their size.
            pieces, self._pieces = self._pieces, []
            if pieces:
                self._feed(b"".join(pieces))
        return self._rest + data[at:] if self.ended else b""

    def _take_piece(self, piece: bytes) -> None:
        self._decoded += len(piece)
        self._pieces.append(piece)

    def _end(self, rest: bytes) -> None:
        self.ended = True
        self._rest = rest
