"""
A connection to a server: HTTP/1.1, one request at a time (RFC 9112).

=========  ================================================  ========================================================
state      bytes that arrive are                             next state by
=========  ================================================  ========================================================
idle       unexpected: it is aborted                         ``send``: waiting
waiting    the head of the response                          its end: body; no head, cancellation: ended
body       the body, until its end; more is unexpected      a clean end: idle; any other, ``stop``, or if the body
                                                             of the request was not sent to its end: ended
ended      ignored                                           -
=========  ================================================  ========================================================

A connection always ends by an abort: an orderly end of TLS waits for the peer, and an upstream may never answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol, IPushProducer, ITCPTransport, ITransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.tcp import Connection as TcpConnection
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IBodyProducer, IClientRequest, IResponse
from zope.interface import implementer

from pkgrepo.untrusted.chunks import ChunkDecoder, MalformedChunks

from .head import Head, HeadReader, HeadTooLarge, NotHttp

RECEIVED = 512 * 1024  # bytes read from a connection at once; with 256 KiB images take a fifth more of its time

_COMPLETE: Final = Failure(ResponseDone("the body is complete"))
_UNFRAMED: Final = Failure(PotentialDataLoss("the body ended with the connection"))


@implementer(IResponse, IPushProducer)
class Response:
    """
    A response whose head has come.

    treq sees no header fields: it would decode the body without a limit, and keep cookies. They are in ``head``.
    """

    version = (b"HTTP", 1, 1)
    phrase = b""
    request: IClientRequest | None = None
    previousResponse: IResponse | None = None

    def __init__(self, head: Head, connection: Connection) -> None:
        self.head = head
        self.code = head.status
        self.length: Any = UNKNOWN_LENGTH if head.length is None else head.length
        self.headers = Headers()
        self._connection = connection
        self._early: list[bytes] = []
        self._reader: IProtocol | None = None
        self._end: Failure | None = None

    def deliverBody(self, protocol: IProtocol) -> None:
        """Give the body to a reader; what has come is delivered at once."""
        if self._reader is not None:
            raise RuntimeError("the body has a reader already")
        self._reader = protocol
        protocol.makeConnection(cast("ITransport", self))  # as Twisted's own client, with a producer only
        early, self._early = self._early, []
        for data in early:
            protocol.dataReceived(data)
        if self._end is not None:
            protocol.connectionLost(self._end)
        else:
            self._connection.resume(self)

    def setPreviousResponse(self, response: IResponse) -> None:
        """Note the response that led to this one."""
        self.previousResponse = response

    @property
    def has_reader(self) -> bool:
        """Whether the body has a reader."""
        return self._reader is not None

    def receive(self, data: bytes) -> None:
        """Pass bytes of the body on."""
        if self._reader is None:
            self._early.append(data)
        else:
            self._reader.dataReceived(data)

    def end(self, reason: Failure) -> None:
        """Note the end of the body."""
        self._end = reason
        if self._reader is not None:
            self._reader.connectionLost(reason)

    # As the transport of the reader

    def pauseProducing(self) -> None:
        """Read no more for now."""
        self._connection.pause(self)

    def resumeProducing(self) -> None:
        """Read on."""
        self._connection.resume(self)

    def stopProducing(self) -> None:
        """End the connection, unless the body has ended."""
        self._connection.stop(self)


class Connection(Protocol):
    """
    A connection; ``send`` is for one that is idle.

    ``on_made`` and ``on_end`` are called with it, and ``on_idle`` when it can be used again.
    """

    def __init__(
        self,
        *,
        on_made: Callable[[Connection], None],
        on_idle: Callable[[Connection], None],
        on_end: Callable[[Connection], None],
    ) -> None:
        self.key: Hashable = None  # of those that can be used in its place
        self.idle_since = 0.0
        self._on_made = on_made
        self._on_idle = on_idle
        self._on_end = on_end
        self._head: HeadReader | None = None
        self._answering: Deferred[Response] | None = None
        self._answer: Response | None = None
        self._left = 0  # bytes of the body, if its length is known
        self._chunks: ChunkDecoder | None = None
        self._paused = False
        self._unbuffered = False
        self._sending = False  # the body of a request
        self.received_any = False  # since the last ``send``
        self.ended = False

    def connectionMade(self) -> None:
        """Read in larger pieces if it is TCP: each piece of a body costs as much."""
        transport: Any = self.transport
        if hasattr(transport, "bufferSize"):
            transport.bufferSize = RECEIVED
        if ITCPTransport.providedBy(transport):
            transport.setTcpNoDelay(True)
        self._unbuffered = isinstance(transport, TcpConnection) and not transport.TLS
        self._on_made(self)

    def send(self, message: bytes, *, bodiless: bool, body: IBodyProducer | None = None) -> Deferred[Response]:
        """
        Send a request, whose response has no body if it is ``bodiless``. Cancelling the Deferred ends the connection.

        ``body`` is a push producer of what follows the ``message``. The response may come before all of it is sent.

        :raises NotHttp: the response is not HTTP; :raises HeadTooLarge: its head exceeds a limit; and what ends a
            connection
        """
        self._head = HeadReader(bodiless=bodiless)
        self.received_any = False
        answering: Deferred[Response] = Deferred(self._cancelled)
        self._answering = answering
        self._write(message)
        if body is not None:
            self._send_body(body)
        return answering

    def abort(self) -> None:
        """End the connection at once."""
        if not self.ended:
            self.ended = True
            self.transport.abortConnection()  # type: ignore[union-attr]

    # For the reader of the response

    def pause(self, answer: Response) -> None:
        """Read no more of a response for now."""
        if answer is self._answer and not self._paused:
            self._paused = True
            self.transport.pauseProducing()  # type: ignore[union-attr]

    def resume(self, answer: Response) -> None:
        """Read on."""
        if answer is self._answer:
            self._resume()

    def stop(self, answer: Response) -> None:
        """End the connection, unless a response has ended."""
        if answer is self._answer:
            self.abort()

    # From the transport

    def dataReceived(self, data: bytes) -> None:
        """Take bytes."""
        if self.ended:
            return
        if self._answer is not None:
            self._receive_body(self._answer, data)
        elif self._answering is not None:
            self._receive_head(self._answering, data)
        else:
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the end on to the task that waits for a response, or reads one."""
        self.ended = True
        self._on_end(self)
        answering, self._answering = self._answering, None
        answer, self._answer = self._answer, None
        if answering is not None:
            answering.errback(reason)
        elif answer is not None:
            unframed = answer.head.length is None and not answer.head.chunked
            answer.end(_UNFRAMED if unframed else reason)

    # Below

    def _write(self, message: bytes) -> None:
        """Write at once what the kernel takes: through the reactor it costs another turn, and two system calls."""
        transport: Any = self.transport
        if self._unbuffered:
            sent = transport.writeSomeData(message)
            if sent == len(message):
                return
            if isinstance(sent, int):  # else the transport gets the same error, and handles it
                message = message[sent:]
            self._unbuffered = False  # from now on: nothing may overtake what the transport has
        transport.write(message)

    def _send_body(self, body: IBodyProducer) -> None:
        transport: Any = self.transport
        self._sending = True
        self._unbuffered = False
        transport.registerProducer(body, True)
        body.startProducing(transport).addCallbacks(self._sent, self._unsent)

    def _sent(self, _: None) -> None:
        self._sending = False
        cast("Any", self.transport).unregisterProducer()

    def _unsent(self, failure: Failure) -> None:
        answering, self._answering = self._answering, None
        self.abort()
        if answering is not None:
            answering.errback(failure)

    def _cancelled(self, _: Deferred[Response]) -> None:
        self._answering = None
        self.abort()

    def _receive_head(self, answering: Deferred[Response], data: bytes) -> None:
        self.received_any = True
        assert self._head is not None
        try:
            found = self._head.feed(data)
        except (HeadTooLarge, NotHttp) as error:
            self._answering = None
            self.abort()
            answering.errback(error)
            return
        if found is None:
            return
        head, rest = found
        self._answering = self._head = None
        self._left = head.length or 0
        self._chunks = ChunkDecoder() if head.chunked else None
        answer = self._answer = Response(head, self)
        # First: a short body is there when its head is passed on, and leaves the connection to others.
        self._receive_body(answer, rest)
        answering.callback(answer)
        if not answer.has_reader:
            self.pause(answer)

    def _receive_body(self, answer: Response, data: bytes) -> None:
        if self._chunks is not None:
            self._receive_chunks(answer, self._chunks, data)
        elif answer.head.length is None:
            if data:
                answer.receive(data)
        elif len(data) < self._left:
            self._left -= len(data)
            if data:
                answer.receive(data)
        else:
            last = data if len(data) == self._left else data[: self._left]
            if last:
                answer.receive(last)
            self._complete(answer, clean=len(last) == len(data))

    def _receive_chunks(self, answer: Response, chunks: ChunkDecoder, data: bytes) -> None:
        pieces: list[memoryview | bytes] = []
        error: MalformedChunks | None = None
        end = 0
        try:
            end = chunks.decode(data, pieces)
        except MalformedChunks as problem:
            error = problem
        if pieces:
            answer.receive(b"".join(pieces))
        if error is not None:
            self._lose(answer, Failure(error))
        elif chunks.ended:
            self._complete(answer, clean=end == len(data))

    def _complete(self, answer: Response, *, clean: bool) -> None:
        """End a response; the connection is free, unless more came than was asked for."""
        if answer is not self._answer:
            return  # its reader has ended the connection
        self._answer = self._chunks = None
        self._resume()
        if clean and answer.head.persists and not self._sending:
            self._on_idle(self)  # first: the reader may ask for something else
        else:
            self.abort()
        answer.end(_COMPLETE)

    def _lose(self, answer: Response, reason: Failure) -> None:
        if answer is self._answer:
            self._answer = self._chunks = None
            self.abort()
            answer.end(reason)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self.transport.resumeProducing()  # type: ignore[union-attr]
