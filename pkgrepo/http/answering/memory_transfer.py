"""
Bodies in memory that are large, and bodies that write themselves, on their way to the client.

A body that turns out shorter than announced never looks complete: the connection is aborted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer
from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo.http.connection import Connection
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content
from pkgrepo.http.twisted_internals import unsent

PIECE = 128 * 1024  # bytes of a body in memory written at once; what Twisted gives the kernel in one call
BYTES_PER_TURN = 1024 * 1024  # of a body in memory, given to the kernel in a turn of the reactor: some 200 us

_log = Logger()


def send_large(request: Request, head: bytes, body: bytes) -> Deferred[None] | None:
    """
    Send a response whose body is a large one in memory, of which little is copied at a time, or nothing without TLS.

    None when the kernel has taken all of it, else a Deferred for its end, which never fails.
    """
    channel: Connection = request.channel
    request.sentLength = 0
    rest = memoryview(body)
    if not channel.direct:
        channel.send(head)
        transfer: _SendBytes | _PushBytes = _PushBytes(request, rest)
    else:
        sent = channel.send_now(head, rest[:BYTES_PER_TURN])
        if sent < len(head):
            channel.write(head[sent:])
        request.sentLength = max(sent - len(head), 0)
        rest = rest[request.sentLength :]
        if not rest:
            request.finish()
            return None
        transfer = _SendBytes(request, rest)
    transfer.begin()
    return transfer.done


async def deliver(request: Request, content: Content, start: int, end: int, begin: Callable[[], None]) -> None:
    """
    Let ``content`` write itself; ``begin`` writes the head, before its first byte.

    What it raises before that byte is raised here, so that another response can be given. Later, or when it ends early,
    the connection is aborted.
    """
    assert content.deliver is not None
    consumer = _BoundedConsumer(request, end - start, begin)
    try:
        awaitable = content.deliver(consumer, start, end)
        delivery = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(_wait(awaitable))
        request.notifyFinish().addErrback(lambda _: delivery.cancel())
        await delivery
    except CancelledError:
        request.abort()
    except Exception:
        if not (request.gone or request.startedWriting):
            raise
        if not request.gone:  # whatever it was, the client must not take the body for whole
            _log.failure("delivering a body failed, request {request_id}", request_id=request.request_id)
        request.abort()
    else:
        if consumer.left and not request.gone and not content.endless:
            _log.error("a body ended {left} bytes early", left=consumer.left)
            request.abort()
        else:
            request.finish()


async def _wait(awaitable: Awaitable[None]) -> None:
    await awaitable


class _MemoryTransfer:
    """A body in memory that is being sent; ``done`` fires at its end, or when the client has left."""

    def __init__(self, request: Request, body: memoryview) -> None:
        self.done: Deferred[None] = Deferred(lambda _: self._abort())
        self._request = request
        self._channel: Connection = request.channel
        self._body = body
        self._ended = False

    def stopProducing(self) -> None:
        """End the transfer: the client has left."""
        if not self._ended:
            self._ended = True
            self._body = memoryview(b"")
            self._request.gone = True  # the transport calls this before the channel's connectionLost
            self._fire()

    def _abort(self) -> None:
        self._request.abort()
        self.stopProducing()

    def _complete(self) -> None:
        self._ended = True
        self._request.finish()
        self._fire()

    def _fire(self) -> None:
        if not self.done.called:
            self.done.callback(None)


@implementer(IPullProducer)
class _SendBytes(_MemoryTransfer):
    """A transfer on a plain TCP connection: the kernel copies what the client reads."""

    waits_for_client = True

    def begin(self) -> None:
        """Replace the channel as the transport's producer."""
        self._transport = self._channel.socket
        self._channel.hand_over(self)

    def resumeProducing(self) -> None:
        """Send some; called when the transport's buffer is empty and the socket writable."""
        transport = self._transport
        if self._ended or unsent(transport):
            return
        try:
            sent = transport.socket.send(self._body[:BYTES_PER_TURN])
        except BlockingIOError:
            sent = 0  # the kernel's buffer is full; this is called again when it is not
        except OSError:
            self._abort()
            return
        self._request.sentLength += sent
        self._body = self._body[sent:]
        if self._body:
            transport.startWriting()
        else:
            self._channel.take_back()
            self._complete()

    def stopProducing(self) -> None:
        """End the transfer: the client has left."""
        self._channel.transfer = None
        super().stopProducing()


@implementer(IPushProducer)
class _PushBytes(_MemoryTransfer):
    """
    A transfer by writes, for transports that change the bytes (TLS).

    The transport copies what is written: if it were written at once, a large document that many clients read slowly
    would be in memory once for each of them.
    """

    _paused = True

    def begin(self) -> None:
        """Start writing."""
        self._channel.registerProducer(self, True)
        if not self._channel.blocked:
            self.resumeProducing()

    def pauseProducing(self) -> None:
        """Stop writing: the transport's write buffer is full."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Write on, until the transport's write buffer is full."""
        if not self._paused or self._ended:
            return
        self._paused = False
        while not (self._paused or self._ended):
            piece, self._body = self._body[:PIECE], self._body[PIECE:]
            self._request.sentLength += len(piece)
            self._channel.write(bytes(piece))
            if not self._body and not self._ended:
                self._channel.unregisterProducer()
                self._complete()


@implementer(IConsumer)
class _BoundedConsumer:
    """The consumer of a body that writes itself; takes no more bytes than the head announced."""

    def __init__(self, request: Request, count: int, begin: Callable[[], None]) -> None:
        self._request: Any = request
        self._begin = begin
        self.left = count

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pass on."""
        if self._request.gone:
            producer.stopProducing()
        else:
            self._request.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """Pass on."""
        if not self._request.gone:
            self._request.unregisterProducer()

    def write(self, data: bytes) -> None:
        """Pass the bytes on, up to the announced length."""
        data = data[: self.left] if len(data) > self.left else data
        self.left -= len(data)
        if data and not self._request.gone:
            if not self._request.startedWriting:
                self._begin()
            self._request.sentLength += len(data)
            self._request.channel.write_now(data)
