"""
Bodies in files, on their way to the client.

On plain TCP the kernel copies (``sendfile``): the transfer replaces the channel as the transport's producer and is
called whenever the socket is writable. Under TLS a push producer reads 256 KiB at a time. Neither waits for a disk in
the reactor: pages that are not in the page cache are read by a thread first.

A body that turns out shorter than announced never looks complete: the connection is aborted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPullProducer, IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.http.connection import Connection
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Growing
from pkgrepo.http.twisted_internals import unsent

CHUNK = 256 * 1024  # bytes read at once under TLS; half the user time of 16 KiB reads
BYTES_PER_TURN = 1024 * 1024  # of one transfer, in a turn of the reactor

_log = Logger()


def read_cached(fd: int, offset: int, count: int) -> bytes | None:
    """Up to ``count`` bytes from the page cache, ``b""`` at the end of the file, None when the disk must be read."""
    buffer = bytearray(count)
    try:
        got = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except OSError:  # not cached (EAGAIN), or a file system that cannot tell
        return None
    return bytes(buffer) if got == count else bytes(memoryview(buffer)[:got])


def send_file(request: Request, fd: int, start: int, end: int, growing: Growing | None = None) -> Deferred[None]:
    """Send a part of a file, after its head was written; the descriptor and ``growing`` are closed in any case."""
    channel: Connection = request.channel
    kind = SendFile if channel.direct else PushFile
    transfer = kind(request, fd, start, end, growing)
    with suppress(OSError):
        os.posix_fadvise(fd, start, end - start, os.POSIX_FADV_SEQUENTIAL)
    transfer.begin()
    return transfer.done


class _FileTransfer:
    """A part of a file that is being sent; ``done`` fires when all is handed over, or when the client has left."""

    def __init__(self, request: Request, fd: int, start: int, end: int, growing: Growing | None) -> None:
        self.request = request
        self.channel: Connection = request.channel
        self.done: Deferred[None] = Deferred(lambda _: self.abort())
        self._fd = fd
        self._offset = start
        self._end = end
        self._growing = growing
        self._limit = end if growing is None else start  # where the bytes that may be sent now end
        self._growth: Deferred[None] | None = None
        self._reading = False
        self._ended = False
        self._extend_limit()

    @property
    def waits_for_client(self) -> bool:
        """Whether it waits for the socket; otherwise a thread is reading the disk, or the body has to grow."""
        return not self._reading and self._growth is None

    def abort(self) -> None:
        """Abort the connection."""
        self.request.abort()
        self.stopProducing()

    def stopProducing(self) -> None:
        """End the transfer: the client has left."""
        if not self._ended:
            self._ended = True
            self.request.gone = True  # the transport calls this before the channel's connectionLost
            self._close()
            self._leave_growing()
            self._fire()

    def _complete(self) -> None:
        self._ended = True
        self._close()
        self._leave_growing()
        self.request.finish()
        self._fire()

    def _fire(self) -> None:
        if not self.done.called:
            self.done.callback(None)

    def _close(self) -> None:
        # While a thread reads from the descriptor its number must not be reused.
        if not self._reading and self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _leave_growing(self) -> None:
        growing, self._growing = self._growing, None
        growth, self._growth = self._growth, None
        if growth is not None:
            growth.cancel()
        if growing is not None:
            growing.close()

    def _extend_limit(self) -> bool:
        """Whether there are bytes to send beyond the limit, which is then moved."""
        if self._growing is not None:
            self._limit = max(self._limit, min(self._end, self._growing.available(self._end)))
        return self._limit > self._offset

    def _await_growth(self, then: Callable[[], None]) -> None:
        """Call ``then`` when there are more bytes to send; abort when none will come."""
        assert self._growing is not None

        def grown(_: None) -> None:
            self._growth = None
            if self._extend_limit():
                then()
            else:
                self._await_growth(then)

        def failed(_: Failure) -> None:
            self._growth = None
            if not self._ended:  # else it was cancelled
                self.abort()

        growth = self._growth = self._growing.wait()
        growth.addCallbacks(grown, failed)

    def _abort_early_end(self) -> None:
        _log.error(
            "a body ended {missing} bytes early, request {request_id}",
            missing=self._end - self._offset,
            request_id=self.request.request_id,
        )
        self.abort()

    def _read_in_thread(self, count: int, then: Callable[[bytes], None]) -> None:
        """Read at the present offset in a thread, then call ``then`` with the bytes."""
        self._reading = True

        def arrived(result: Any) -> None:
            self._reading = False
            if self._ended:
                self._close()
            elif isinstance(result, Failure):
                _log.failure("reading a body failed", failure=result)
                self.abort()
            else:
                then(result)

        self.channel.site.in_thread(_read, self._fd, count, self._offset).addBoth(arrived)


def _read(fd: int, count: int, offset: int) -> bytes:
    os.posix_fadvise(fd, offset, 4 * count, os.POSIX_FADV_WILLNEED)
    return os.pread(fd, count, offset)


@implementer(IPullProducer)
class SendFile(_FileTransfer):
    """A transfer by ``sendfile`` on a plain TCP connection."""

    def begin(self) -> None:
        """Replace the channel as the transport's producer."""
        self._transport = self.channel.socket
        assert self._transport is not None
        self.channel.hand_over(self)

    def resumeProducing(self) -> None:
        """Send some; called when the transport's buffer is empty and the socket writable."""
        transport = self._transport
        if self._ended or self._reading or self._growth is not None or unsent(transport):
            return
        try:
            self._send_turn(transport.fileno())
        except BlockingIOError:
            pass  # the kernel's buffer is full; this is called again when it is not
        except OSError as error:
            if not isinstance(error, ConnectionError):
                _log.failure("sending a body failed")
            self.abort()
            return
        if self._offset == self._end:
            self.channel.take_back()
            self._complete()
        elif self._ended or self._reading:
            return
        elif self._offset < self._limit or self._extend_limit():
            transport.startWriting()
        else:
            self._await_growth(self.resumeProducing)

    def _send_turn(self, socket: int) -> None:
        budget = min(BYTES_PER_TURN, self._limit - self._offset)
        if budget == 0:  # the first of the bytes has not arrived
            return
        if not _is_cached(self._fd, self._offset + budget - 1):
            self._read_in_thread(budget, self._warmed)
            return
        while budget > 0:
            sent = os.sendfile(socket, self._fd, self._offset, budget)
            if sent == 0:
                self._abort_early_end()
                return
            budget -= sent
            self._offset += sent
            self.request.sentLength += sent

    def _warmed(self, data: bytes) -> None:
        if not data:
            self._abort_early_end()
        else:
            self._transport.startWriting()

    def stopProducing(self) -> None:
        """End the transfer: the client has left."""
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
class PushFile(_FileTransfer):
    """A transfer by reads and writes, for transports that change the bytes (TLS)."""

    _paused = True

    def begin(self) -> None:
        """Start writing."""
        self.channel.registerProducer(self, True)
        self.resumeProducing()

    def pauseProducing(self) -> None:
        """Stop writing: the transport's write buffer is full."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Write on, until the transport's write buffer is full."""
        if not self._paused or self._ended:
            return
        self._paused = False
        while not (self._paused or self._reading or self._ended or self._growth is not None):
            if self._offset == self._limit and not self._extend_limit():
                self._await_growth(self._go_on)
                return
            count = min(CHUNK, self._limit - self._offset)
            data = read_cached(self._fd, self._offset, count)
            if data is None:
                self._read_in_thread(count, self._read_done)
            else:
                self._write(data)

    def _read_done(self, data: bytes) -> None:
        self._write(data)
        self._go_on()

    def _go_on(self) -> None:
        if not self._paused:
            self._paused = True
            self.resumeProducing()

    def _write(self, data: bytes) -> None:
        if not data:
            self._abort_early_end()
            return
        self._offset += len(data)
        self.request.sentLength += len(data)
        self.channel.write(data)
        if self._offset == self._end and not self._ended:
            self.channel.unregisterProducer()
            self._complete()
