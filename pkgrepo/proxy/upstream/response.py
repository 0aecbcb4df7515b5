"""Responses of upstreams: the limits and timeouts of reading them, and their content coding, gzip (RFC 9110 8.4.1)."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from zope.interface import implementer

from pkgrepo.concurrency.time_limits import TimedOut
from pkgrepo.errors import UpstreamFailed, UpstreamTimeout, UpstreamTooLarge, UpstreamTruncated
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.client import BodyLost, ReceivedBody
from pkgrepo.outbound.connection import RECEIVED, Response
from pkgrepo.outbound.head import Head
from pkgrepo.proxy.upstream.limits import Deadline

_CODING = b"content-encoding"
TURN = 1024 * 1024  # bytes that are inflated in one turn of the reactor, a few milliseconds

PIECE = 64 * 1024  # bytes that are inflated at once
FREE_SIZE = 16 * 1024 * 1024  # bytes; up to this size any ratio is allowed
MOST_RATIO = 250  # real index documents reach 50; zlib's highest is 1032
MOST_MEMBERS = 1000  # gzip members in one body


class ResponseHeaders:
    """The fields of a response, by name without regard to case."""

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def get(self, name: str) -> str | None:
        """The value, ISO-8859-1 decoded; fields of one name are joined by a comma (RFC 9110 section 5.3)."""
        value = self._fields.get(_on_the_wire(name))
        return None if value is None else value.decode("latin-1")


@frozen(kw_only=True)
class Reading:
    """
    How a response is read: the route's name, the limits, the deadline, and the longest pause with its setting.

    ``on_failure`` is called with the reason when the body ends early through the upstream's fault, and ``on_silence``
    when nothing of it comes for too long.
    """

    route: str
    limits: ReadLimits
    deadline: Deadline
    idle_s: float | None
    idle_setting: str
    on_failure: Callable[[str], None]
    on_silence: Callable[[str], None]


@implementer(IUpstreamResponse)
class UpstreamResponse(AsyncIterator[bytes]):
    """
    A response of an upstream. ``prepare`` comes before the first read, and ``close`` at the end.

    ``received`` is how many bytes of the body were read, as they were sent; ``ended_s`` is the reactor's time when its
    end was, None before that.
    """

    def __init__(self, response: Response, url: str, reading: Reading, *, only_head: bool) -> None:
        head = response.head
        self.status = head.status
        self.reason = head.reason.decode("utf-8", "replace")
        # The body is read without its coding.
        self.headers = ResponseHeaders({name: head.fields[name] for name in head.fields if name != _CODING})
        self.url = url
        self.length = _announced_length(head) if only_head else head.length
        self._only_head = only_head
        self._coding = head.fields.get(_CODING, b"").decode("latin-1")
        self._reading = reading
        self.received = 0
        self.ended_s: float | None = None
        self._size = 0
        self._inflater: Inflater | None = None
        self._inflated: Iterator[bytes] = iter(())
        self._inflated_in_turn = 0
        self._body = ReceivedBody(RECEIVED)
        response.deliverBody(self._body)

    @property
    def complete(self) -> bool:
        """Whether the whole body has come."""
        return self._body.ended

    @property
    def framed(self) -> bool:
        """Whether the body ends otherwise than with the connection."""
        return self._body.framed

    def chunks(self) -> UpstreamResponse:
        """Iterate over the body."""
        return self

    async def read(self) -> bytes:
        """All of the body."""
        return b"".join([chunk async for chunk in self])

    def __aiter__(self) -> UpstreamResponse:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._next()
        except BaseException:
            self.close()
            raise
        if not chunk:
            raise StopAsyncIteration
        self._size += len(chunk)
        if self._size > self._reading.limits.max_bytes:
            self.close()
            raise self._too_large()
        return chunk

    def prepare(self) -> None:
        """
        Check what the head says about the body.

        :raises UpstreamTooLarge: it is too long; :raises UpstreamFailed: it has an unknown coding
        """
        try:
            self._inflater = make_inflater([self._coding])
        except BadCoding as error:
            raise UpstreamFailed(self._reading.route, error.args[0]) from None
        if self._inflater is not None:
            self.length = None
        elif not self._only_head and (self.length or 0) > self._reading.limits.max_bytes:
            raise self._too_large()

    def close(self) -> None:
        """Close the connection unless the body ended; it may be called several times."""
        self._body.abort()

    async def _next(self) -> bytes:
        if self._inflater is None:
            return await self._receive()
        try:
            return await self._next_inflated(self._inflater)
        except BadCoding as error:
            raise UpstreamFailed(self._reading.route, error.args[0]) from None

    async def _next_inflated(self, inflater: Inflater) -> bytes:
        while True:
            piece = next(self._inflated, b"")
            if piece:
                self._inflated_in_turn += len(piece)
                if self._inflated_in_turn > TURN:
                    self._inflated_in_turn = 0
                    await deferLater(self._reading.deadline.reactor, 0)
                return piece
            received = await self._receive()
            if not received:
                inflater.end()
                return b""
            self._inflated = inflater.feed(received)

    async def _receive(self) -> bytes:
        reading = self._reading
        try:
            data = await self._body.read(self._wait)
        except BodyLost:
            reason = "it ended the connection in the middle of its answer"
            reading.on_failure(reason)
            raise UpstreamTruncated(reading.route, reason) from None
        except TimedOut as error:
            (reading.on_silence if reading.deadline.left_s > 0 else reading.on_failure)(error.reason)
            raise UpstreamTimeout(reading.route, error.reason) from None
        self.received += len(data)
        if not data:
            self.ended_s = reading.deadline.reactor.seconds()
        return data

    async def _wait(self, work: Deferred[None]) -> None:
        reading = self._reading
        reason = f"it sent nothing for {reading.idle_s:g} s ({reading.idle_setting})"
        await reading.deadline.wait(work, reading.idle_s, reason)

    def _too_large(self) -> UpstreamTooLarge:
        return UpstreamTooLarge(
            self._reading.route, f"its answer is larger than {self._reading.limits.max_bytes} bytes"
        )


@lru_cache(maxsize=100)
def _on_the_wire(name: str) -> bytes:
    """A name as heads have it. Each response is asked for a dozen, always the same ones."""
    return name.lower().encode("ascii")


def _announced_length(head: Head) -> int | None:
    """The length of the body that a GET would get."""
    value = head.fields.get(b"content-length", b"")
    return int(value) if value.isdigit() else None


class BadCoding(Exception):  # noqa: N818 - named for what happened
    """The body cannot be decoded; ``args[0]`` is the reason, a clause for people."""


class Inflater:
    """Inflates a gzip body (RFC 1952) piece by piece."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._sent = 0
        self._inflated = 0
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        """
        The decoded bytes of ``data``, in pieces of at most L{PIECE} bytes.

        :raises BadCoding: it is no gzip, or its ratio is that of an attack
        """
        self._sent += len(data)
        while data:
            if self._inflater.eof:
                self._next_member()
            try:
                piece = self._inflater.decompress(data, PIECE)
            except zlib.error:
                raise BadCoding("its answer is not in gzip, as it says") from None
            data = self._inflater.unused_data or self._inflater.unconsumed_tail
            self._inflated += len(piece)
            if self._inflated > max(FREE_SIZE, self._sent * MOST_RATIO):
                raise BadCoding(f"its answer inflates to more than {MOST_RATIO} times its size")
            if piece:
                yield piece

    def end(self) -> None:
        """Check that the last member is complete; no bytes at all are, too. :raises BadCoding: it is not"""
        if self._sent and not self._inflater.eof:
            raise BadCoding("its answer ends within compressed data")

    def _next_member(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BadCoding("its answer has too many gzip members")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)


def make_inflater(encodings: list[str]) -> Inflater | None:
    """
    What decodes a body with these Content-Encoding values; None: nothing needs to be done.

    :raises BadCoding: it is another coding than gzip, which we did not ask for
    """
    names = [name.strip().lower() for value in encodings for name in value.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not names:
        return None
    if names not in (["gzip"], ["x-gzip"]):
        raise BadCoding("its answer has a coding that was not asked for")
    return Inflater()
