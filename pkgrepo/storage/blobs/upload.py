"""
Bytes on their way into a filesystem store.

=========  ==========================================  ========================================================
phase      ``write`` does                              left by
=========  ==========================================  ========================================================
taking     gather, hand slices to the disk threads     ``seal``, ``suspend``: ending; ``abort``: gone
ending     refuse                                      success: sealed or done; any error or cancellation: gone
sealed     refuse                                      ``commit_together``: ending; ``abort``: gone
done       refuse                                      nothing; ``abort`` does nothing
gone       drop the bytes                              nothing; the disk holds no trace once ``abort`` returned
=========  ==========================================  ========================================================

The reactor's thread only moves references. Everything that blocks goes through the upload's ``DiskQueue``, in order.
``abort`` therefore needs no lock: its clean-up runs after every call queued before it, and also undoes a commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from errno import EIO
from types import TracebackType
from typing import ParamSpec, TypeVar

from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.errors import PkgrepoError, SizeMismatch, StorageFailed, TooLarge, TooManyOpenFiles
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo

from .backpressure import BackPressure
from .digester import Digester, check_digests
from .disk_queue import DiskQueue
from .durability import storage_error
from .paths import new_locator
from .syscalls import memory_file
from .upload_file import UploadFile, place_together
from .upload_state import UploadState

T = TypeVar("T")
P = ParamSpec("P")

log = Logger()

SLICE = 256 * 1024  # bytes handed to a thread at once; a hop costs about 50 us, writing and hashing these 200 us
HIGH_WATER = 4 * SLICE  # bytes in memory at which the producer is paused; a hundred uploads stay near 100 MiB
LOW_WATER = 2 * SLICE  # bytes in memory at which it is resumed: enough for the threads to go on meanwhile
SMALL = 32 * 1024  # bytes hashed in the reactor's thread and kept in memory until the commit: 100 us, as two hops cost
REREAD = 4 * 1024 * 1024  # bytes read again at once when an upload has moved; others' slices get between


class Phase(Enum):
    """Where an upload is in its life."""

    RECEIVING = "receiving"
    ENDING = "ending"
    SEALED = "sealed"
    DONE = "done"
    ABORTED = "aborted"


@implementer(IBlobUpload)
class FilesystemUpload:
    """
    One upload; ``FilesystemBlobStore`` makes them.

    ``recorded`` are the digests of what a resumed file holds, given when ``digester`` has not seen those bytes.
    ``on_end`` is called once, with the digester when the upload was suspended and None otherwise.
    """

    def __init__(
        self,
        upload_id: str,
        *,
        storage: str,
        queue: DiskQueue,
        temporary: UploadFile,
        digester: Digester,
        limit: int | None,
        on_end: Callable[[str, Digester | None], None],
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        self.id = upload_id
        self.offset = temporary.size
        self._storage = storage
        self._queue = queue
        self._temporary = temporary
        self._digester = digester
        self._limit = limit
        self._on_end = on_end
        self._recorded = recorded
        self._pressure = BackPressure(high=HIGH_WATER, low=LOW_WATER)
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._corrupt: OSError | None = None
        self._sealed: BlobInfo | None = None
        self.data: bytes | None = None
        self._phase = Phase.RECEIVING

    async def __aenter__(self) -> FilesystemUpload:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.abort()

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Govern the producer that feeds ``write``; it is stopped when the upload fails or is aborted."""
        self._pressure.register(producer, streaming)

    def unregisterProducer(self) -> None:
        """Let the producer go; it has given everything."""
        self._pressure.unregister()

    def write(self, data: bytes) -> None:
        """Take the next bytes. :raises TooLarge: past the limit"""
        if self._phase is Phase.ABORTED or not data:
            return
        if self._phase is not Phase.RECEIVING:
            raise RuntimeError("the upload was ended already")
        if self._limit is not None and self.offset + len(data) > self._limit:
            raise TooLarge(self._limit)
        self.offset += len(data)
        if self._pressure.error is not None:
            return  # commit will raise it; what comes until then must not fill the memory
        self._gathered.append(data)
        self._gathered_size += len(data)
        if self._gathered_size >= SLICE:
            self._hand_over()
        self._pressure.add(len(data))

    def drained(self) -> Awaitable[None]:
        """Wait until few enough bytes are in flight to take more. :raises StorageFull: or ``StorageFailed``"""
        return self._pressure.drained()

    async def seal(self, expected: Mapping[str, str] | None = None, size: int | None = None) -> BlobInfo:
        """
        Take no more bytes; what ``commit`` makes of them. Nothing is visible yet, and a crash leaves nothing.

        :raises DigestMismatch: some digest differs; :raises SizeMismatch: ``size`` differs
        :raises ValueError: ``expected`` names an algorithm that was not asked for at the beginning
        :raises StorageFull: or ``StorageFailed``; :raises CancelledError: ``abort`` came in between
        """
        self._begin_end()
        try:
            if size is not None and size != self.offset:
                raise SizeMismatch(size, self.offset)
            unknown = set(expected or ()) - set(self._digester.algorithms)
            if unknown:
                raise ValueError(f"{sorted(unknown)} were not asked for when the upload began")
            if self._gathered_size == self.offset <= SMALL:
                self.data = b"".join(self._gathered)
                self._gathered.clear()
                self._digester.update(self.data)
                self._sealed = self._info(self._digester.digests(), dict(expected or {}))
            else:
                self._sealed = await self._end(self._seal, dict(expected or {}))
        except BaseException:
            await self.abort()
            raise
        self._phase = Phase.SEALED
        return self._sealed

    def descriptor(self) -> int:
        """
        A new file descriptor of the sealed bytes, to read them from; the caller closes it.

        :raises StorageFailed: there is none
        """
        if self._phase is not Phase.SEALED:
            raise RuntimeError("the upload is not sealed")
        try:
            return self._temporary.duplicate() if self.data is None else memory_file(self.data)
        except OSError as error:
            raise self.explain(error) from error

    async def commit(self, expected: Mapping[str, str] | None = None, size: int | None = None) -> BlobInfo:
        """
        Make the bytes durable and visible, or leave nothing; of a sealed upload ``expected`` and ``size`` are known.

        :raises DigestMismatch: and others, see ``seal``; :raises StorageFull: or ``StorageFailed``
        :raises CancelledError: ``abort`` came in between
        """
        info = await self.seal(expected, size) if self._sealed is None else self._sealed
        await commit_together([self])
        return info

    async def suspend(self) -> bytes:
        """
        Make what was received durable and return the state (at most 4 KiB) from which ``resume`` goes on.

        An upload without a byte leaves nothing on the disk.

        :raises StorageFull: or ``StorageFailed``, and nothing is left; :raises CancelledError: ``abort`` came between
        """
        self._begin_end()
        try:
            state = await self._end(self._keep)
        except BaseException:
            await self.abort()
            raise
        self._phase = Phase.DONE
        self._on_end(self.id, self._digester if self._recorded is None else None)
        return state.encode()

    async def abort(self) -> None:
        """Remove every trace; safe to call at any time, also twice, and without effect after success."""
        if self._phase is Phase.DONE:
            return
        if self._phase is not Phase.ABORTED:
            self._phase = Phase.ABORTED
            self._gathered.clear()
            self.data = None
            self._pressure.fail(CancelledError())
        await self._queue.run(self._temporary.discard)
        # After the clean-up: while it waits its turn, a sweep must take the file for one in use.
        self._on_end(self.id, None)

    # What follows is for ``commit_together``.

    @property
    def is_sealed(self) -> bool:
        """Whether ``commit`` is the next step."""
        return self._phase is Phase.SEALED

    @property
    def is_aborted(self) -> bool:
        """Whether it was aborted."""
        return self._phase is Phase.ABORTED

    def begin_commit(self, queue: DiskQueue | None = None) -> DiskQueue:
        """
        Begin to be committed in a queue, another's or its own.

        Nothing is under way in the queue of a sealed upload, and what comes from now on waits for the commit.
        """
        self._phase = Phase.ENDING
        self._queue = queue or self._queue
        return self._queue

    def end_commit(self) -> None:
        """It was committed."""
        self._phase = Phase.DONE
        self.data = None
        self._on_end(self.id, None)

    def explain(self, error: OSError) -> PkgrepoError:
        """The domain's word for what happened to it."""
        explained = storage_error(self._storage, error)
        told = isinstance(explained, TooManyOpenFiles)
        if not told and self._pressure.error is None and self._phase is not Phase.ABORTED:
            log.error("storage {storage} failed an upload: {error}", storage=self._storage, error=str(error))
        return explained

    def prepare(self) -> tuple[UploadFile, str]:
        """The file with all its bytes, and the locator that it is to get. Runs on a disk thread."""
        data, sealed = self.data, self._sealed
        if self.is_aborted or sealed is None:
            raise CancelledError
        if data is not None:
            self._temporary.append(data)
        self._temporary.check()
        return self._temporary, sealed.locator

    # Below

    def _begin_end(self) -> None:
        if self._phase is not Phase.RECEIVING:
            raise RuntimeError("the upload was ended already")
        self._phase = Phase.ENDING

    async def _end(self, func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the last call of the upload after everything that was written."""
        if self._pressure.error is not None:
            raise self._pressure.error
        if self._gathered:
            self._hand_over()
        try:
            result = await self._queue.run(func, *args, **kwargs)
        except OSError as error:
            raise self.explain(error) from error
        if self.is_aborted:
            raise CancelledError
        return result

    def _hand_over(self) -> None:
        if self._recorded is not None:
            self._hand_over_rereading(self._recorded)
            self._recorded = None
        data = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
        size = self._gathered_size
        self._gathered.clear()
        self._gathered_size = 0
        self._queue.run(self._take, data).addCallbacks(lambda _: self._pressure.remove(size), self._fail)

    def _hand_over_rereading(self, recorded: Mapping[str, str]) -> None:
        """Let the digester see what another process wrote, before what is written now."""
        end = self._temporary.size
        for start in range(0, end, REREAD):
            self._queue.run(self._reread, start, min(start + REREAD, end)).addErrback(self._fail)
        self._queue.run(self._compare, recorded).addErrback(self._fail)

    def _fail(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, OSError):
            error = self.explain(error)
        elif not isinstance(error, PkgrepoError):
            log.failure("upload to storage {storage} failed", failure, storage=self._storage)
        self._pressure.fail(error if isinstance(error, Exception) else StorageFailed(self._storage))

    # What follows runs on a disk thread.

    def _take(self, data: bytes) -> None:
        if self.is_aborted:
            return
        self._temporary.append(data)
        self._digester.update(data)

    def _reread(self, start: int, end: int) -> None:
        while start < end and not self.is_aborted:
            data = self._temporary.read(start, min(SLICE, end - start))
            if not data:
                raise self._mark_corrupt("an unfinished upload has become shorter")
            self._digester.update(data)
            start += len(data)

    def _compare(self, recorded: Mapping[str, str]) -> None:
        if not self.is_aborted and self._digester.digests() != recorded:
            raise self._mark_corrupt("an unfinished upload does not hold what was written")

    def _mark_corrupt(self, reason: str) -> OSError:
        """The error, kept so that a commit already in the queue raises it too."""
        self._corrupt = OSError(EIO, reason)
        return self._corrupt

    def _seal(self, expected: Mapping[str, str]) -> BlobInfo:
        if self.is_aborted:
            raise CancelledError
        return self._info(self._digests(), expected)

    def _info(self, digests: Mapping[str, str], expected: Mapping[str, str]) -> BlobInfo:
        check_digests(digests, expected)
        return BlobInfo(digests["sha256"], self.offset, new_locator(digests["sha256"]), digests)

    def _keep(self) -> UploadState:
        digests = self._digests()
        if self._temporary.size:
            self._temporary.keep()
        return UploadState(self._temporary.size, self._limit, digests)

    def _digests(self) -> dict[str, str]:
        """Of everything that was written; an error if something could not be."""
        self._temporary.check()
        if self._corrupt is not None:
            raise self._corrupt
        if self._recorded is not None:
            return dict(self._recorded)
        return self._digester.digests()


async def commit_together(uploads: Sequence[FilesystemUpload]) -> None:
    """
    Make sealed uploads of one store durable and visible by one call on a disk thread, or leave nothing of any.

    :raises StorageFull: or ``StorageFailed``; :raises CancelledError: somebody aborted one
    :raises RuntimeError: one is not sealed, or was committed already; all stay as they are
    """
    if not all(each.is_sealed for each in uploads):
        raise RuntimeError("only sealed uploads are committed together")
    queue = uploads[0].begin_commit()
    for each in uploads[1:]:
        each.begin_commit(queue)
    try:
        await queue.run(_place, uploads)
        if any(each.is_aborted for each in uploads):
            raise CancelledError
    except OSError as error:
        explained = uploads[0].explain(error)
        await _abort(uploads)
        raise explained from error
    except BaseException:
        await _abort(uploads)
        raise
    for each in uploads:
        each.end_commit()


async def _abort(uploads: Sequence[FilesystemUpload]) -> None:
    for each in uploads:
        await each.abort()


def _place(uploads: Sequence[FilesystemUpload]) -> None:
    place_together([each.prepare() for each in uploads])
