"""Reads a copy in a bucket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from twisted.internet.interfaces import IConsumer
from zope.interface import implementer

from pkgrepo.concurrency.pools import DiskQueue, Pool
from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import IBlob
from pkgrepo.s3.bucket import Bucket
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.blobs.durability import storage_error
from pkgrepo.storage.blobs.reading import PausableProducer
from pkgrepo.storage.blobs.s3.spool import Spool

TURN = 1024 * 1024  # bytes collected for a thread; a hop costs about 50 us


async def digest_object(
    bucket: Bucket, key: str, size: int, algorithms: Iterable[str], queue: DiskQueue, storage: str
) -> dict[str, str]:
    """The digests of an object of ``size`` bytes. :raises StorageFailed: it cannot be read, or has another size"""
    digester = Digester(algorithms)
    async with aclosing(_turns(bucket.read(key))) as turns:
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
            async with aclosing(_turns(self._bucket.read(self._key))) as turns:
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
            async with aclosing(self._bucket.read(self._key, start, end)) as chunks:
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
        async with aclosing(self._bucket.read(self._key, start, start + count)) as chunks:
            return b"".join([chunk async for chunk in chunks])
