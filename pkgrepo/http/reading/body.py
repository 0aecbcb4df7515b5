"""The body of a request, which its handler reads while it arrives, and its framing: a length, or the chunked coding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from pkgrepo.http.responses import Refusal
from pkgrepo.untrusted.chunks import ChunkDecoder, MalformedChunks

PIECE_COST = 64  # bytes of memory that even the smallest piece takes
HIGH_WATER = 256 * 1024  # bytes held before the client is paused; a slow sink then gets few, big chunks

__all__ = ["BodyFraming", "MalformedChunks"]


class BodyTooLarge(Refusal):
    """The body is, or is announced to be, longer than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request body is larger than the {limit} bytes allowed here", "BODY_TOO_LARGE")
        self.limit = limit


class BodyLost(Refusal):
    """The body did not arrive whole: the client left, was too slow, or broke the framing."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(status, sentence, "BODY_LOST")


class BodySource(Protocol):
    """What a body needs of its connection."""

    def pause_body(self) -> None:
        """Stop reading from the client."""

    def resume_body(self) -> None:
        """Read again."""

    def send_continue(self) -> None:
        """Send ``100 Continue`` to a client that waits for it."""


class Body:
    """
    An asynchronous iterator over the bytes of a request body, read once and by one reader.

    A chunk is what has arrived since the last one, at most a little over L{HIGH_WATER}; above that, reading from the
    socket is paused. ``declared`` is the announced length, None for the chunked coding. With a ``limit`` reading raises
    L{BodyTooLarge}: at once for a declared length, else at the first byte too many. The first read sends
    ``100 Continue`` to a client that asked for it (RFC 9110 section 10.1.1).
    """

    def __init__(self, source: BodySource, declared: int | None) -> None:
        self.declared = declared
        self.limit: int | None = None
        self.received = 0  # bytes that came in, read or not
        self.ended = declared == 0
        self._source = source
        self._held: list[bytes] = []
        self._held_size = 0
        self._paused = False
        self._continue_sent = False
        self._failure: Exception | None = None
        self._waiting: Deferred[None] | None = None

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self.read()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        """
        The next chunk, or ``b""`` at the end.

        :raises BodyTooLarge: ``limit`` is exceeded
        :raises BodyLost: the client left, was too slow, or broke the framing
        """
        limit = self.limit
        if limit is not None and max(self.declared or 0, self.received) > limit:
            raise BodyTooLarge(limit)
        if not self._continue_sent:
            self._continue_sent = True
            if not self.ended:
                self._source.send_continue()
        while not self._held and not self.ended and self._failure is None:
            await self._more()
            if limit is not None and self.received > limit:
                raise BodyTooLarge(limit)
        if self._held:
            return self._take()
        if self._failure is not None:
            raise self._failure
        return b""

    async def read_all(self, limit: int) -> bytes:
        """
        The whole body, for small documents of at most ``limit`` bytes.

        :raises BodyTooLarge: it is longer than ``limit``, or than a smaller ``limit`` set before
        """
        self.limit = limit if self.limit is None else min(self.limit, limit)
        return b"".join([chunk async for chunk in self])

    def feed(self, data: bytes) -> None:
        """Append bytes from the connection."""
        self.received += len(data)
        self._held.append(data)
        self._held_size += max(len(data), PIECE_COST)
        if self._waiting is not None:
            self._wake()  # the reader takes all of it, or has ended
        elif self._held_size >= HIGH_WATER and not self._paused:
            self._paused = True
            self._source.pause_body()

    def end(self) -> None:
        """Mark the end of the body."""
        self.ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """Raise ``error`` to the reader, after the bytes that have arrived."""
        if not self.ended and self._failure is None:
            self._failure = error
            self._wake()

    def _take(self) -> bytes:
        held = self._held
        chunk = held[0] if len(held) == 1 else b"".join(held)
        self._held, self._held_size = [], 0
        if self._paused:
            self._paused = False
            self._source.resume_body()
        return chunk

    async def _more(self) -> None:
        waiting: Deferred[None] = Deferred(self._forget)
        self._waiting = waiting
        await waiting

    def _forget(self, _cancelled: Deferred[None]) -> None:
        self._waiting = None

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)


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
