"""
An upload into a filesystem store, from its first byte to its commit.

=========  ==========================================  ========================================================
phase      ``write``                                   next phase
=========  ==========================================  ========================================================
receiving  takes bytes                                 ``seal``, ``suspend``: ending; ``abort``: aborted
ending     raises RuntimeError                         success: sealed or done; error or cancellation: aborted
sealed     raises RuntimeError                         ``commit_together``: ending; ``abort``: aborted
done       raises RuntimeError                         none; ``abort`` does nothing
aborted    drops the bytes                             none; no trace is on the disk once ``abort`` has returned
=========  ==========================================  ========================================================

The reactor's thread only moves references. Everything that blocks goes through the upload's ``DiskQueue``, in order.
``abort`` therefore needs no lock: its clean-up runs after every call queued before it, and also undoes a commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from types import TracebackType

from twisted.internet.defer import CancelledError
from zope.interface import implementer

from pkgrepo.errors import PkgrepoError, SizeMismatch, TooLarge
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo

from .digester import Digester, check_digests
from .disk_queue import DiskQueue
from .paths import new_locator
from .slice_writer import SliceWriter
from .syscalls import memory_file
from .upload_file import UploadFile, place_together
from .upload_state import UploadState

SMALL = 64 * 1024  # bytes hashed in the reactor's thread and kept in memory until the commit: 150 us; hops cost more


class Phase(Enum):
    """The state of an upload; see the table above."""

    RECEIVING = "receiving"
    ENDING = "ending"
    SEALED = "sealed"
    DONE = "done"
    ABORTED = "aborted"


@implementer(IBlobUpload)
class FilesystemUpload:
    """
    One upload; ``FilesystemBlobStore`` makes them.

    ``recorded``: see L{SliceWriter}. ``on_end`` is called once, with the digester when the upload was suspended and
    with None otherwise.
    """

    def __init__(
        self,
        upload_id: str,
        *,
        storage: str,
        queue: DiskQueue,
        file: UploadFile,
        digester: Digester,
        limit: int | None,
        on_end: Callable[[str, Digester | None], None],
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        self.id = upload_id
        self.offset = file.size
        self.data: bytes | None = None
        self._queue = queue
        self._file = file
        self._limit = limit
        self._on_end = on_end
        self._slices = SliceWriter(queue, file, digester, storage=storage, recorded=recorded)
        self._sealed: BlobInfo | None = None
        self._phase = Phase.RECEIVING

    async def __aenter__(self) -> FilesystemUpload:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.abort()

    @property
    def readable(self) -> int:
        """How many bytes, from the first on, a descriptor can read."""
        return self._slices.readable

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Pause and resume the producer that feeds ``write``; it is stopped when the upload fails or is aborted."""
        self._slices.pressure.register(producer, streaming)

    def unregisterProducer(self) -> None:
        """Forget the producer, which has given everything."""
        self._slices.pressure.unregister()

    def write(self, data: bytes) -> None:
        """Take the next bytes. :raises TooLarge: past the limit"""
        if self._phase is Phase.ABORTED or not data:
            return
        if self._phase is not Phase.RECEIVING:
            raise RuntimeError("the upload was ended already")
        if self._limit is not None and self.offset + len(data) > self._limit:
            raise TooLarge(self._limit)
        self.offset += len(data)
        self._slices.add(data)

    def share(self, on_progress: Callable[[], None]) -> None:
        """Write bytes to the file soon, and call ``on_progress`` when ``readable`` has grown, until ``seal``."""
        if self._phase is Phase.RECEIVING:
            self._slices.share(on_progress)

    def drained(self) -> Awaitable[None]:
        """Wait until few enough bytes are in flight to take more. :raises StorageFull: or ``StorageFailed``"""
        return self._slices.pressure.drained()

    async def seal(self, expected: Mapping[str, str] | None = None, size: int | None = None) -> BlobInfo:
        """
        Take no more bytes. Returns what ``commit`` makes of them; until then nothing is visible, or survives a crash.

        :raises DigestMismatch: some digest differs; :raises SizeMismatch: ``size`` differs
        :raises ValueError: ``expected`` names an algorithm that was not asked for at the beginning
        :raises StorageFull: or ``StorageFailed``; :raises CancelledError: ``abort`` was called meanwhile
        """
        self._begin_end()
        try:
            if size is not None and size != self.offset:
                raise SizeMismatch(size, self.offset)
            unknown = set(expected or ()) - set(self._slices.algorithms)
            if unknown:
                raise ValueError(f"{sorted(unknown)} were not asked for when the upload began")
            if self._slices.buffered == self.offset <= SMALL:
                self.data = self._slices.take_buffer()
                self._sealed = self._info(expected or {})
            else:
                self._sealed = await self._slices.run_last(self._seal, expected or {})
        except BaseException:
            await self.abort()
            raise
        self._phase = Phase.SEALED
        return self._sealed

    def descriptor(self) -> int:
        """
        Return a new file descriptor for reading the sealed bytes, or the ``readable`` ones; the caller closes it.

        :raises StorageFailed: there is none
        """
        # Before the first slice there is no file, and a commit closes it.
        if self._phase is not Phase.SEALED and not (self._phase is Phase.RECEIVING and self.readable):
            raise RuntimeError("the upload has no bytes to read yet, or has ended")
        try:
            return self._file.duplicate() if self.data is None else memory_file(self.data)
        except OSError as error:
            raise self._slices.explain(error) from error

    async def commit(self, expected: Mapping[str, str] | None = None, size: int | None = None) -> BlobInfo:
        """
        Make the bytes durable and visible, or leave nothing; ``expected`` and ``size`` are for an unsealed upload.

        :raises DigestMismatch: and others, see ``seal``; :raises StorageFull: or ``StorageFailed``
        :raises CancelledError: ``abort`` was called meanwhile
        """
        info = await self.seal(expected, size) if self._sealed is None else self._sealed
        await commit_together([self])
        return info

    async def suspend(self) -> bytes:
        """
        Make what was received durable and return the state (at most 4 KiB) from which ``resume`` goes on.

        An upload without a byte leaves nothing on the disk.

        :raises StorageFull: or ``StorageFailed``, and nothing is left
        :raises CancelledError: ``abort`` was called meanwhile
        """
        self._begin_end()
        try:
            state = await self._slices.run_last(self._keep)
        except BaseException:
            await self.abort()
            raise
        self._phase = Phase.DONE
        self._on_end(self.id, self._slices.digester)
        return state.encode()

    async def abort(self) -> None:
        """Remove every trace; safe to call at any time, also twice, and without effect after success."""
        if self._phase is Phase.DONE:
            return
        if self._phase is not Phase.ABORTED:
            self._phase = Phase.ABORTED
            self.data = None
            self._slices.abort()
        await self._queue.run(self._file.discard)
        # After the clean-up: until it has run, a sweep must take the file for one in use.
        self._on_end(self.id, None)

    # For ``commit_together``

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
        Enter the phase of the commit, which runs in ``queue`` or the upload's own; returns that queue.

        The queue of a sealed upload is empty. Calls of this upload from now on wait for the commit.
        """
        self._phase = Phase.ENDING
        self._queue = queue or self._queue
        return self._queue

    def end_commit(self) -> None:
        """Enter the phase after a successful commit."""
        self._phase = Phase.DONE
        self.data = None
        self._on_end(self.id, None)

    def explain(self, error: OSError) -> PkgrepoError:
        """Return the domain error for a file error of the commit."""
        return self._slices.explain(error)

    def prepare(self) -> tuple[UploadFile, str]:
        """Return the file with all its bytes, and the locator that it is to get. Runs on a disk thread."""
        data, sealed = self.data, self._sealed
        if self.is_aborted or sealed is None:
            raise CancelledError
        if data is not None:
            self._file.append(data)
        self._file.check()
        return self._file, sealed.locator

    # Below

    def _begin_end(self) -> None:
        if self._phase is not Phase.RECEIVING:
            raise RuntimeError("the upload was ended already")
        self._phase = Phase.ENDING

    def _seal(self, expected: Mapping[str, str]) -> BlobInfo:
        """Runs on a disk thread."""
        if self.is_aborted:
            raise CancelledError
        return self._info(expected)

    def _info(self, expected: Mapping[str, str]) -> BlobInfo:
        digests = self._slices.digests()
        check_digests(digests, expected)
        return BlobInfo(digests["sha256"], self.offset, new_locator(digests["sha256"]), digests)

    def _keep(self) -> UploadState:
        """Runs on a disk thread."""
        digests = self._slices.digests()
        if self._file.size:
            self._file.keep()
        return UploadState(self._file.size, self._limit, digests)


async def commit_together(uploads: Sequence[FilesystemUpload]) -> None:
    """
    Make sealed uploads of one store durable and visible by one call on a disk thread, or leave nothing of any.

    :raises StorageFull: or ``StorageFailed``; :raises CancelledError: one was aborted meanwhile
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
