"""
Writes and hashes the bytes of one upload on the disk threads, and pauses its producer.

The reactor's thread collects bytes until they fill a slice, and puts each slice into the upload's ``DiskQueue``. Bytes
that are buffered or queued count as in flight; ``pressure`` pauses the producer while there are too many of them.

A shared upload queues smaller slices: what is buffered whenever no other slice is queued. Its readers see the bytes
early, and a fast producer still fills whole slices while the threads are busy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from errno import EIO
from typing import ParamSpec, Protocol, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IPullProducer, IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.pools import DiskQueue
from pkgrepo.errors import PkgrepoError, StorageFailed, TooManyOpenFiles
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.blobs.durability import storage_error

T = TypeVar("T")
P = ParamSpec("P")
log = Logger()
SLICE = 512 * 1024  # bytes handed to a thread at once; a hop costs about 50 us, writing and hashing these 400 us
HIGH_WATER = 2 * SLICE  # bytes in flight at which the producer is paused; a hundred uploads stay near 100 MiB
LOW_WATER = SLICE  # bytes in flight at which it is resumed: enough for the threads to go on meanwhile
REREAD = 4 * 1024 * 1024  # bytes read again by one call; slices of other uploads run between two calls


class BackPressure:
    """
    Counts the bytes in memory. At ``high`` bytes it pauses the producer, and at ``low`` bytes it resumes it.

    Both kinds of producer work: a push producer is paused and resumed, a pull producer is asked for more bytes.
    """

    def __init__(self, *, high: int, low: int) -> None:
        self.buffered = 0
        self._high = high
        self._low = low
        self._taken = 0
        self._error: Exception | None = None
        self._waiting: list[Deferred[None]] = []
        self._push: IPushProducer | None = None
        self._pull: IPullProducer | None = None
        self._paused = False
        self._pulling = False

    @property
    def error(self) -> Exception | None:
        """The error that ``fail`` was called with, or None."""
        return self._error

    def register(self, producer: object, streaming: bool) -> None:
        """
        Control a producer from now on.

        :raises RuntimeError: one is registered already
        """
        if self._push is not None or self._pull is not None:
            raise RuntimeError("a producer is registered already")
        if self._error is not None:
            cast("IPullProducer", producer).stopProducing()
            return
        if not streaming:
            self._pull = cast("IPullProducer", producer)
            self._pull_more()
            return
        self._push = cast("IPushProducer", producer)
        self._paused = False
        self._pause()

    def unregister(self) -> None:
        """Forget the producer, which has given everything."""
        self._push = None
        self._pull = None

    def add(self, count: int) -> None:
        """Count bytes that are in memory now."""
        self.buffered += count
        self._taken += count
        self._pause()
        self._pull_more()

    def remove(self, count: int) -> None:
        """Count bytes that are no longer in memory."""
        self.buffered -= count
        if self.buffered > self._low:
            return
        self._wake()
        if self._push is not None and self._paused:
            self._paused = False
            self._push.resumeProducing()
        self._pull_more()

    def fail(self, error: Exception) -> None:
        """Stop the producer, and have ``drained`` raise ``error``. Only the first error is kept."""
        if self._error is not None:
            return
        self._error = error
        producer = self._push or self._pull
        self.unregister()
        if producer is not None:
            producer.stopProducing()
        self._wake()

    async def drained(self) -> None:
        """Wait until fewer than ``high`` bytes are in memory, or ``low`` after a pause."""
        if self._error is None and self.buffered >= self._high:
            waiter: Deferred[None] = Deferred()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(None)

    def _pause(self) -> None:
        if self._push is not None and not self._paused and self.buffered >= self._high:
            self._paused = True
            self._push.pauseProducing()

    def _pull_more(self) -> None:
        """Ask a pull producer for more until ``high`` is reached; it may write at once or later."""
        if self._pulling:
            return
        self._pulling = True
        try:
            while self._pull is not None and self.buffered < self._high:
                before = self._taken
                self._pull.resumeProducing()
                if self._taken == before:
                    return
        finally:
            self._pulling = False


class SliceFile(Protocol):
    """The file of an upload; its methods block. An error is kept, and raised again by every later call."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    def append(self, data: bytes) -> None:
        """Write at the end. :raises OSError: it failed"""

    def read(self, start: int, count: int) -> bytes:
        """Return ``count`` bytes that were written before; fewer only at the end."""

    def check(self) -> None:
        """Check that no call has failed. :raises OSError: the first error"""


class SliceWriter:
    """
    The bytes of an upload between ``write`` and its file.

    ``recorded`` are the digests of the bytes that a resumed file holds, if ``digester`` has not seen them. They are
    read again before the first new slice is written.
    """

    def __init__(
        self,
        queue: DiskQueue,
        file: SliceFile,
        digester: Digester,
        *,
        storage: str,
        recorded: Mapping[str, str] | None,
    ) -> None:
        self.pressure = BackPressure(high=HIGH_WATER, low=LOW_WATER)
        self.buffered = 0  # bytes that are in no slice yet
        self.readable = file.size  # bytes that are in the file
        self._queue = queue
        self._file = file
        self._digester = digester
        self._storage = storage
        self._recorded = recorded
        self._buffer: list[bytes] = []
        self._corrupt: OSError | None = None
        self._aborted = False
        self._queued = 0  # slices
        self._on_progress: Callable[[], None] | None = None

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of the digests that are computed, sha256 first."""
        return self._digester.algorithms

    @property
    def digester(self) -> Digester | None:
        """The digester of all bytes of the upload, or None if those of a resumed file were not read again."""
        return self._digester if self._recorded is None else None

    def share(self, on_progress: Callable[[], None]) -> None:
        """Write bytes early from now on, and call ``on_progress`` when ``readable`` has grown."""
        self._on_progress = on_progress
        self._queue_partial_slice()

    def add(self, data: bytes) -> None:
        """Buffer the next bytes, and queue a slice when the buffer is full; after a failure they are dropped."""
        if self.pressure.error is not None:
            return
        self._buffer.append(data)
        self.buffered += len(data)
        if self.buffered >= SLICE:
            self._queue_slice()
        else:
            self._queue_partial_slice()
        self.pressure.add(len(data))

    def reread(self) -> None:
        """Have the digester see the bytes that a process has left in the file, whatever they are."""
        end = self._file.size
        for start in range(0, end, REREAD):
            self._queue.run(self._reread, start, min(start + REREAD, end)).addErrback(self._fail)

    def take_buffer(self) -> bytes:
        """Return all bytes of an upload of which no slice was queued, hashed in the calling thread."""
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._digester.update(data)
        return data

    async def run_last(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Run the upload's last call on the disk thread, after all bytes were written.

        :raises PkgrepoError: a write or the call failed; :raises CancelledError: ``abort`` was called meanwhile
        """
        if self.pressure.error is not None:
            raise self.pressure.error
        self._on_progress = None
        if self._buffer:
            self._queue_slice()
        try:
            result = await self._queue.run(func, *args, **kwargs)
        except OSError as error:
            raise self.explain(error) from error
        if self._aborted:
            raise CancelledError
        return result

    def abort(self) -> None:
        """Drop what is buffered, have queued slices do nothing, and stop the producer."""
        self._aborted = True
        self._on_progress = None
        self._buffer.clear()
        self.pressure.fail(CancelledError())

    def explain(self, error: OSError) -> PkgrepoError:
        """Return the domain error for a file error; the first of an upload is logged."""
        explained = storage_error(self._storage, error)
        if not isinstance(explained, TooManyOpenFiles) and self.pressure.error is None:
            log.error("storage {storage} failed an upload: {error}", storage=self._storage, error=str(error))
        return explained

    def digests(self) -> dict[str, str]:
        """
        Return the digests of everything that was written. Runs on a disk thread.

        :raises OSError: a write failed, or the bytes of a resumed file changed
        """
        self._file.check()
        if self._corrupt is not None:
            raise self._corrupt
        if self._recorded is not None:
            return dict(self._recorded)
        return self._digester.digests()

    def _queue_slice(self) -> None:
        if self._recorded is not None:
            self._queue_rereading(self._recorded)
            self._recorded = None
        pieces, self._buffer = self._buffer, []
        size, self.buffered = self.buffered, 0
        self._queued += 1
        self._queue.run(self._write, pieces).addCallbacks(self._written, self._fail, callbackArgs=(size,))

    def _queue_partial_slice(self) -> None:
        if self._on_progress is not None and self.buffered and not self._queued:
            self._queue_slice()

    def _written(self, _: None, size: int) -> None:
        self._queued -= 1
        if not self._aborted:
            self.readable += size
            self._queue_partial_slice()
            if self._on_progress is not None:
                self._on_progress()
        self.pressure.remove(size)

    def _queue_rereading(self, recorded: Mapping[str, str]) -> None:
        """Have the digester see the bytes that another process wrote, before the new ones."""
        self.reread()
        self._queue.run(self._compare, recorded).addErrback(self._fail)

    def _fail(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, OSError):
            error = self.explain(error)
        elif not isinstance(error, PkgrepoError):
            log.failure("upload to storage {storage} failed", failure, storage=self._storage)
        self.pressure.fail(error if isinstance(error, Exception) else StorageFailed(self._storage))

    # These run on a disk thread.

    def _write(self, pieces: list[bytes]) -> None:
        if self._aborted:
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._file.append(data)
        self._digester.update(data)

    def _reread(self, start: int, end: int) -> None:
        while start < end and not self._aborted:
            data = self._file.read(start, min(SLICE, end - start))
            if not data:
                raise self._mark_corrupt("an unfinished upload has become shorter")
            self._digester.update(data)
            start += len(data)

    def _compare(self, recorded: Mapping[str, str]) -> None:
        if not self._aborted and self._digester.digests() != recorded:
            raise self._mark_corrupt("an unfinished upload does not hold what was written")

    def _mark_corrupt(self, reason: str) -> OSError:
        """Return the error, which is kept so that a commit that is queued already raises it too."""
        self._corrupt = OSError(EIO, reason)
        return self._corrupt
