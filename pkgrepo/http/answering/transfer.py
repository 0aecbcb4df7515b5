"""
Bodies that are large, or not in memory, on their way to the client.

On plain TCP the kernel copies (``sendfile``): the transfer takes the connection's place as the transport's producer and
is called whenever the socket takes bytes. Under TLS a push producer reads 256 KiB at a time. Neither waits for a disk
in the reactor: pages that are not in the page cache are fetched by a thread first.

A body that turns out shorter than announced never looks complete: the connection is cut.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.http.answers import Content
from pkgrepo.http.connection import Connection
from pkgrepo.http.request import Request
from pkgrepo.http.twisted_internals import unsent

SMALL = 64 * 1024  # bytes; below this one write of head and body beats setting up a transfer
CHUNK = 256 * 1024  # bytes read at once under TLS; half the user time of 16 KiB reads
PIECE = 128 * 1024  # bytes of a body in memory given out at once; what Twisted gives the kernel in one call
TURN = 1024 * 1024  # bytes a transfer may send before others get their turn

_log = Logger()


def read_cached(fd: int, offset: int, count: int) -> bytes | None:
    """Up to ``count`` bytes from the page cache, ``b""`` at the end of the file, None when it must be waited for."""
    buffer = bytearray(count)
    try:
        got = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except OSError:  # not cached (EAGAIN), or a file system that cannot tell
        return None
    return bytes(buffer) if got == count else bytes(memoryview(buffer)[:got])


class Transfer:
    """One body under way; ``done`` fires when it has been handed over, or when the client has left."""

    def __init__(self, request: Request, fd: int, start: int, end: int) -> None:
        self.request = request
        self.channel: Connection = request.channel
        self.done: Deferred[None] = Deferred(lambda _: self.cut())
        self._fd = fd
        self._offset = start
        self._end = end
        self._fetching = False
        self._over = False

    @property
    def waits_for_client(self) -> bool:
        """Whether it is the client's turn, not the disk's."""
        return not self._fetching

    def cut(self) -> None:
        """Give up; the client sees a broken connection."""
        self.request.abort()
        self.stopProducing()

    def stopProducing(self) -> None:
        """The client has left."""
        if not self._over:
            self._over = True
            self.request.gone = True  # the transport tells us before it tells the channel
            self._close()
            self._fire()

    def _complete(self) -> None:
        self._over = True
        self._close()
        self.request.finish()
        self._fire()

    def _fire(self) -> None:
        if not self.done.called:
            self.done.callback(None)

    def _close(self) -> None:
        # While a thread reads from the descriptor its number must not be given away.
        if not self._fetching and self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _short(self) -> None:
        _log.error(
            "a body ended {missing} bytes early, request {request_id}",
            missing=self._end - self._offset,
            request_id=self.request.request_id,
        )
        self.cut()

    def _fetch(self, count: int, then: Callable[[bytes], None]) -> None:
        """Read at the current offset in a thread, then go on with the bytes."""
        self._fetching = True

        def arrived(result: Any) -> None:
            self._fetching = False
            if self._over:
                self._close()
            elif isinstance(result, Failure):
                _log.failure("reading a body failed", failure=result)
                self.cut()
            else:
                then(result)

        self.channel.site.in_thread(_read, self._fd, count, self._offset).addBoth(arrived)


def _read(fd: int, count: int, offset: int) -> bytes:
    os.posix_fadvise(fd, offset, 4 * count, os.POSIX_FADV_WILLNEED)
    return os.pread(fd, count, offset)


@implementer(IPullProducer)
class SendFile(Transfer):
    """A transfer by ``sendfile`` on a plain TCP connection."""

    def begin(self) -> None:
        """Take over the transport."""
        self._transport = self.channel.socket
        assert self._transport is not None
        self.channel.transfer = self
        self._transport.unregisterProducer()
        self._transport.registerProducer(self, False)

    def resumeProducing(self) -> None:
        """Send a turn's worth; called when the transport's own buffer is empty and the socket writable."""
        transport = self._transport
        if self._over or self._fetching or unsent(transport):
            return
        try:
            self._send_turn(transport.fileno())
        except BlockingIOError:
            pass  # the kernel's buffer is full; it says when it is not
        except OSError as error:
            if not isinstance(error, ConnectionError):
                _log.failure("sending a body failed")
            self.cut()
            return
        if self._offset == self._end:
            self._hand_back()
        elif not self._over and not self._fetching:
            transport.startWriting()

    def _send_turn(self, socket: int) -> None:
        budget = min(TURN, self._end - self._offset)
        if not _is_cached(self._fd, self._offset + budget - 1):
            self._fetch(budget, self._warmed)
            return
        while budget > 0:
            sent = os.sendfile(socket, self._fd, self._offset, budget)
            if sent == 0:
                self._short()
                return
            budget -= sent
            self._offset += sent
            self.request.sentLength += sent

    def _warmed(self, data: bytes) -> None:
        if not data:
            self._short()
        else:
            self._transport.startWriting()

    def _hand_back(self) -> None:
        self.channel.transfer = None
        self._transport.unregisterProducer()
        self._transport.registerProducer(self.channel, True)
        self._complete()

    def stopProducing(self) -> None:
        """The client has left."""
        self.channel.transfer = None
        super().stopProducing()


def _is_cached(fd: int, offset: int) -> bool:
    """Whether the byte at ``offset`` is in memory; true where the file system cannot tell."""
    try:
        os.preadv(fd, [bytearray(1)], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@implementer(IPushProducer)
class PushFile(Transfer):
    """A transfer by reading and writing, for transports that change the bytes."""

    _paused = True

    def begin(self) -> None:
        """Start pushing."""
        self.channel.registerProducer(self, True)
        self.resumeProducing()

    def pauseProducing(self) -> None:
        """The transport has enough."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The transport wants more."""
        if not self._paused or self._over:
            return
        self._paused = False
        while not (self._paused or self._fetching or self._over):
            count = min(CHUNK, self._end - self._offset)
            data = read_cached(self._fd, self._offset, count)
            if data is None:
                self._fetch(count, self._fetched)
            else:
                self._write(data)

    def _fetched(self, data: bytes) -> None:
        self._write(data)
        if not self._paused:
            self._paused = True
            self.resumeProducing()

    def _write(self, data: bytes) -> None:
        if not data:
            self._short()
            return
        self._offset += len(data)
        self.request.sentLength += len(data)
        self.channel.write(data)
        if self._offset == self._end and not self._over:
            self.channel.unregisterProducer()
            self._complete()


@implementer(IPushProducer)
class PushBytes:
    """
    A body in memory, given out as the client takes it.

    The transport copies what it is given: a large document that many clients read slowly would otherwise be in memory
    once for each of them. ``done`` fires at the end, or when the client has left.
    """

    def __init__(self, request: Request, body: bytes) -> None:
        self.done: Deferred[None] = Deferred(lambda _: self._cut())
        self._request = request
        self._channel: Connection = request.channel
        self._body = memoryview(body)
        self._paused = True
        self._over = False

    def begin(self) -> None:
        """Start pushing."""
        self._channel.registerProducer(self, True)
        if not self._channel.blocked:
            self.resumeProducing()

    def pauseProducing(self) -> None:
        """The transport has enough."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The transport wants more."""
        if not self._paused or self._over:
            return
        self._paused = False
        while not (self._paused or self._over):
            piece, self._body = self._body[:PIECE], self._body[PIECE:]
            self._request.sentLength += len(piece)
            self._channel.write(bytes(piece))
            if not self._body and not self._over:
                self._over = True
                self._channel.unregisterProducer()
                self._request.finish()
                self._fire()

    def stopProducing(self) -> None:
        """The client has left."""
        if not self._over:
            self._over = True
            self._body = memoryview(b"")
            self._request.gone = True  # the transport tells us before it tells the channel
            self._fire()

    def _cut(self) -> None:
        self._request.abort()
        self.stopProducing()

    def _fire(self) -> None:
        if not self.done.called:
            self.done.callback(None)


@implementer(IConsumer)
class Metered:
    """A request as consumer of exactly the bytes that its head announced."""

    def __init__(self, request: Request, count: int) -> None:
        self._request: Any = request
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
        """Pass on what still fits."""
        data = data[: self.left] if len(data) > self.left else data
        self.left -= len(data)
        if data and not self._request.gone:
            self._request.sentLength += len(data)
            self._request.channel.write(data)


def send_file(request: Request, fd: int, start: int, end: int) -> Deferred[None]:
    """Send a part of a file whose head is on its way; the descriptor is closed whatever happens."""
    channel: Connection = request.channel
    transfer = SendFile(request, fd, start, end) if channel.direct else PushFile(request, fd, start, end)
    with suppress(OSError):
        os.posix_fadvise(fd, start, end - start, os.POSIX_FADV_SEQUENTIAL)
    transfer.begin()
    return transfer.done


def send_bytes(request: Request, body: bytes) -> Deferred[None]:
    """Send a body in memory whose head is on its way, holding little more of it than the client is about to take."""
    transfer = PushBytes(request, body)
    transfer.begin()
    return transfer.done


async def deliver(request: Request, content: Content, start: int, end: int) -> None:
    """Let ``content`` write itself, and cut the connection when it fails or gives less than it should."""
    assert content.deliver is not None
    consumer = Metered(request, end - start)
    try:
        awaitable = content.deliver(consumer, start, end)
        delivery = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(_wait(awaitable))
        request.notifyFinish().addErrback(lambda _: delivery.cancel())
        await delivery
    except CancelledError:
        request.abort()
    except Exception:  # noqa: BLE001 - whatever it was, the client must not take the body for whole
        if not request.gone:
            _log.failure("delivering a body failed, request {request_id}", request_id=request.request_id)
        request.abort()
    else:
        if consumer.left and not request.gone:
            _log.error("a body ended {left} bytes early", left=consumer.left)
            request.abort()
        else:
            request.finish()


async def _wait(awaitable: Awaitable[None]) -> None:
    await awaitable
