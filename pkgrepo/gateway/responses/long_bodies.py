"""Long bodies of responses: made piece by piece as fast as the client reads, or kept in temporary files."""

from __future__ import annotations

import errno
import os
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IConsumer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import StorageFull
from pkgrepo.http.responses import Content
from pkgrepo.small_files import write_at
from pkgrepo.storage.blobs.reading import PausableProducer

UNPACKED: Final = 128 * 1024  # bytes of a document in one piece; what Twisted gives the kernel in one call


async def deliver_pieces(make: Callable[[], AsyncIterator[bytes]], consumer: IConsumer, start: int, end: int) -> None:
    """Write the bytes from ``start`` to ``end`` (exclusive) of a body whose pieces ``make`` yields; see L{Content}."""
    producer = PausableProducer()
    consumer.registerProducer(producer, True)
    try:
        at = 0
        async for piece in make():
            await producer.wait_while_paused()
            consumer.write(piece[max(0, start - at) : max(0, end - at)])
            at += len(piece)
    except CancelledError:
        if not producer.stopped:  # else the consumer takes no more
            raise
    finally:
        consumer.unregisterProducer()


async def unpack_pieces(gzip: bytes, cpu: Pool) -> AsyncIterator[bytes]:
    """
    The plain form of a gzip stream of ours, unpacked on threads.

    A piece is unpacked when it is asked for, so each client has one in memory, and one call in the queue of the threads
    at most: clients take turns there, and the reactor goes on meanwhile.
    """
    pieces = _unpack(gzip)
    while piece := await cpu(next, pieces, b""):
        yield piece


def _unpack(gzip: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    rest = memoryview(gzip)
    while not unpacker.eof:
        packed: bytes | memoryview = unpacker.unconsumed_tail
        if not packed:
            packed, rest = rest[:UNPACKED], rest[UNPACKED:]
        piece = unpacker.decompress(packed, UNPACKED)
        if piece:
            yield piece


class TemporaryFile:
    """A file without a name, which is closed with its last reference. Its methods block."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its last reference

    def write(self, data: bytes, start: int) -> None:
        """Write bytes at an offset. :raises StorageFull: there is no room for temporary files"""
        try:
            write_at(self._file.fileno(), data, start)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull("temporary files") from error

    def read(self, start: int, count: int) -> bytes:
        """At most ``count`` bytes from an offset; fewer at the end of the file."""
        return os.pread(self._file.fileno(), count, start)

    def content(self, size: int) -> Content:
        """The first ``size`` bytes as the body of a response, which keeps the file."""
        return Content(size, open=lambda: os.dup(self._file.fileno()))
