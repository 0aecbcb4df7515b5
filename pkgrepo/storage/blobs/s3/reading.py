"""Reads a copy in a bucket; a connection that ends early is followed by a request for the rest."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from twisted.internet.interfaces import IConsumer
from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import IBlob
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.blobs.durability import storage_error
from pkgrepo.storage.blobs.reading import PausableProducer
from pkgrepo.storage.blobs.s3.parts import Spool
from pkgrepo.storage.pools import DiskQueue, Pool

from .bucket import Bucket
from .requests import Incoming, Unanswered

TRIES = 4  # requests for one range, when connections break
TURN = 1024 * 1024  # bytes collected for a thread; a hop costs about 50 us

_CONTENT_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+)")

log = Logger()


async def read_range(
    bucket: Bucket, key: str, storage: str, start: int = 0, end: int | None = None
) -> AsyncGenerator[bytes, None]:
    """
    Yield an object from ``start`` to ``end`` (exclusive), or to its end.

    :raises BlobMissing: the blob does not exist; :raises StorageFailed: it cannot be read to there
    """
    tries = 0
    while end is None or start < end:
        async with bucket.get(key, start, end) as incoming:
            if incoming is None:
                return
            size = _size_of(incoming, start)
            if size is None:
                log.error("storage {storage} sent another range of {key!r}, or no size", storage=storage, key=key)
                raise StorageFailed(storage)
            last = size if end is None else min(end, size)
            try:
                async with aclosing(incoming.chunks()) as chunks:
                    async for chunk in chunks:
                        start += len(chunk)
                        yield chunk
            except Unanswered as error:
                tries += 1
                log.info("reading {key!r} is continued: {reason}", key=key, reason=str(error))
                if tries < TRIES:
                    continue
        if start != last:
            log.error("storage {storage} sent only a part of {key!r}", storage=storage, key=key)
            raise StorageFailed(storage)
        return


def _size_of(incoming: Incoming, start: int) -> int | None:
    """The size of the whole object, as the response has it; None if it does not fit."""
    if incoming.status != 206:
        return incoming.length
    match = _CONTENT_RANGE.fullmatch(incoming.fields.get(b"content-range", b"").decode("latin-1"))
    return int(match[2]) if match is not None and int(match[1]) == start else None


async def digest_object(
    bucket: Bucket, key: str, size: int, algorithms: Iterable[str], queue: DiskQueue, storage: str
) -> dict[str, str]:
    """The digests of an object of ``size`` bytes. :raises StorageFailed: it cannot be read, or has another size"""
    digester = Digester(algorithms)
    async with aclosing(_turns(read_range(bucket, key, storage))) as turns:
        async for data in turns:
            await queue.run(digester.update, data)
    if digester.position != size:
        raise StorageFailed(storage)
    return digester.digests()


async def _turns(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the chunks joined to pieces of about ``TURN`` bytes."""
    held: list[bytes] = []
    size = 0
    async for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= TURN:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


@implementer(IBlob)
class BucketBlob:
    """One stored copy; ``BucketBlobStore.open`` makes them. Nothing is asked of the store before it is read."""

    def __init__(self, bucket: Bucket, key: str, *, storage: str, spool: Spool, disk: Pool) -> None:
        self._bucket = bucket
        self._key = key
        self._storage = storage
        self._spool = spool
        self._disk = disk

    def descriptor(self) -> int | None:
        """Return None: the copy is no file."""
        return None

    async def as_file(self) -> int:
        """
        Return a descriptor of a temporary file with all bytes, which the caller closes.

        :raises BlobMissing: there is no copy; :raises StorageFull: there is no room for temporary files
        :raises StorageFailed: the copy cannot be read
        """
        file = self._spool.new_file()
        queue = DiskQueue(self._disk)
        try:
            async with aclosing(_turns(read_range(self._bucket, self._key, self._storage))) as turns:
                async for data in turns:
                    await queue.run(self._spool.check_room, self._storage, len(data))
                    await queue.run(file.append, data)
            return await queue.run(file.duplicate)
        except OSError as error:
            raise storage_error(self._storage, error) from error
        finally:
            queue.run(file.release)

    async def deliver(self, consumer: IConsumer, start: int, end: int) -> None:
        """
        Write bytes ``start`` to ``end`` (exclusive) to the consumer, as its push producer.

        :raises BlobMissing: there is no copy; :raises StorageFailed: it cannot be read
        :raises CancelledError: the consumer stopped the delivery
        """
        if not 0 <= start <= end:
            raise ValueError(f"no bytes {start} to {end} in a blob")
        if start == end:
            return
        producer: PausableProducer | None = None
        try:
            async with aclosing(read_range(self._bucket, self._key, self._storage, start, end)) as chunks:
                async for chunk in chunks:
                    if producer is None:
                        producer = PausableProducer()
                        consumer.registerProducer(producer, True)
                    await producer.wait_while_paused()
                    consumer.write(chunk)
                    start += len(chunk)
        finally:
            # A consumer that stopped the producer has unregistered it already.
            if producer is not None and not producer.stopped:
                consumer.unregisterProducer()
        if start != end:
            raise ValueError(f"no bytes up to {end} in a blob of {start}")

    async def read(self, start: int, count: int) -> bytes:
        """
        Return ``count`` bytes from ``start``; fewer only at the end.

        :raises BlobMissing: there is no copy; :raises StorageFailed: it cannot be read
        """
        if count <= 0:
            return b""
        async with aclosing(read_range(self._bucket, self._key, self._storage, start, start + count)) as chunks:
            return b"".join([chunk async for chunk in chunks])
