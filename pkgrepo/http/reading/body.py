"""The body of a request, pulled by its handler while it arrives."""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred

from pkgrepo.http.answers import Refusal

PIECE_COST = 64  # bytes that even the smallest piece takes
HIGH_WATER = 256 * 1024  # bytes held before the client is paused; a slow sink then gets few, big chunks


class BodyTooLarge(Refusal):
    """The body is, or says it will be, longer than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request body is larger than the {limit} bytes allowed here", "BODY_TOO_LARGE")
        self.limit = limit


class BodyLost(Refusal):
    """The body ended before its end: the client went away, or its framing was broken."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(status, sentence, "BODY_LOST")


class BodySource(Protocol):
    """What a body asks of its connection."""

    def pause_body(self) -> None:
        """Stop reading from the client."""

    def resume_body(self) -> None:
        """Go on reading."""

    def invite_body(self) -> None:
        """Tell a client that waits for ``100 Continue`` to go on."""


class Body:
    """
    An asynchronous iterator over the bytes of a request body, read once and by one reader.

    A chunk is whatever has arrived since the last one, at most a little over L{HIGH_WATER}; the client is paused
    above that. ``declared`` is the length that the client announced, None when it sends chunks. Setting ``limit``
    makes reading raise L{BodyTooLarge}: at once for a declared length, else with the first byte too many. The first
    read sends ``100 Continue`` to a client that asked for it (RFC 9110 section 10.1.1).
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
        self._invited = False
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
        :raises BodyLost: the client went away, was too slow, or broke the framing
        """
        limit = self.limit
        if limit is not None and max(self.declared or 0, self.received) > limit:
            raise BodyTooLarge(limit)
        if not self._invited:
            self._invited = True
            if not self.ended:
                self._source.invite_body()
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
        The whole body at once, for small documents of at most ``limit`` bytes.

        :raises BodyTooLarge: it is longer than ``limit``, or than a smaller ``limit`` set before
        """
        self.limit = limit if self.limit is None else min(self.limit, limit)
        return b"".join([chunk async for chunk in self])

    def feed(self, data: bytes) -> None:
        """Take bytes from the connection."""
        self.received += len(data)
        self._held.append(data)
        self._held_size += max(len(data), PIECE_COST)
        if self._waiting is not None:
            self._wake()  # who waits takes it all, or wants no more
        elif self._held_size >= HIGH_WATER and not self._paused:
            self._paused = True
            self._source.pause_body()

    def end(self) -> None:
        """The last byte has been fed."""
        self.ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """No further byte will come; the reader gets ``error`` after what is held."""
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
