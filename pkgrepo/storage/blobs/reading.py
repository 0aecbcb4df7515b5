"""Reads a stored blob: pieces in the page cache inline, others on the disk threads."""

from __future__ import annotations

import os
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IPushProducer
from zope.interface import implementer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import IBlob
from pkgrepo.storage.blobs.durability import read_cached

from .durability import storage_error

PIECE = 256 * 1024  # bytes read at once
INLINE = 4  # cached pieces delivered in a row before other connections are served


@implementer(IBlob)
class FilesystemBlob:
    """
    One stored copy; ``FilesystemBlobStore.open`` makes them.

    It holds ``fd`` from ``open`` on, so that the copy may be removed meanwhile. ``fd`` is closed when the object is
    freed, so no reference should be kept for longer than a response takes.
    """

    def __init__(self, fd: int, size: int, *, storage: str, disk: Pool) -> None:
        self._fd = fd
        self._size = size
        self._storage = storage
        self._disk = disk

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._fd)

    def descriptor(self) -> int | None:
        """Return a new read-only file descriptor, which the caller closes. :raises StorageFailed: there is none"""
        try:
            return os.dup(self._fd)
        except OSError as error:
            raise storage_error(self._storage, error) from error

    async def as_file(self) -> int:
        """See ``descriptor``. :raises StorageFailed: there is none"""
        descriptor = self.descriptor()
        assert descriptor is not None, "every copy is a file"
        return descriptor

    async def deliver(self, consumer: IConsumer, start: int, end: int) -> None:
        """
        Write bytes ``start`` to ``end`` (exclusive) to the consumer, as its push producer.

        :raises StorageFailed: the bytes cannot be read; the response must not look complete
        :raises CancelledError: the consumer stopped the delivery
        """
        if not 0 <= start <= end <= self._size:
            raise ValueError(f"no bytes {start} to {end} in a blob of {self._size}")
        producer = PausableProducer()
        consumer.registerProducer(producer, True)
        inline = 0
        try:
            while start < end:
                await producer.wait_while_paused()
                count = min(PIECE, end - start)
                data = read_cached(self._fd, start, count) if inline < INLINE else None
                inline += 1
                if data is None:
                    inline = 0
                    data = await self._read_waiting(start, count)
                    await producer.wait_while_paused()
                if not data:
                    raise StorageFailed(self._storage)
                consumer.write(data)
                start += len(data)
        finally:
            # A consumer that stopped the producer has unregistered it already.
            if not producer.stopped:
                consumer.unregisterProducer()

    async def read(self, start: int, count: int) -> bytes:
        """
        Return ``count`` bytes from ``start``; fewer only at the end.

        :raises StorageFailed: the bytes cannot be read
        """
        count = max(0, min(count, self._size - start))
        pieces = []
        while count:
            data = read_cached(self._fd, start, count) if count <= PIECE else None
            if data is None:
                data = await self._read_waiting(start, count)
            if not data:
                raise StorageFailed(self._storage)
            pieces.append(data)
            start += len(data)
            count -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _read_waiting(self, start: int, count: int) -> bytes:
        try:
            return await self._disk(os.pread, self._fd, count, start)
        except OSError as error:
            raise storage_error(self._storage, error) from error


@implementer(IPushProducer)
class PausableProducer:
    """The state that the consumer controls: running, paused or stopped."""

    def __init__(self) -> None:
        self.stopped = False
        self._waiting: Deferred[None] | None = None
        self._paused = False

    def pauseProducing(self) -> None:
        """Pause the delivery."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Resume the delivery."""
        self._paused = False
        self._wake()

    def stopProducing(self) -> None:
        """Stop the delivery."""
        self.stopped = True
        self._wake()

    async def wait_while_paused(self) -> None:
        """Wait until the delivery is not paused. :raises CancelledError: it was stopped"""
        while self._paused and not self.stopped:
            self._waiting = Deferred()
            await self._waiting
        if self.stopped:
            raise CancelledError

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)
