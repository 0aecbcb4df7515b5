"""
What an upload into any store has in common: it receives, hashes and seals its bytes, in a file of this machine.

=========  ==========================================  ========================================================
phase      ``write``                                   next phase
=========  ==========================================  ========================================================
receiving  takes bytes                                 ``seal``, ``suspend``: ending; ``abort``: aborted
ending     raises RuntimeError                         success: sealed or done; error or cancellation: aborted
sealed     raises RuntimeError                         ``commit_together``: ending; ``abort``: aborted
done       raises RuntimeError                         none; ``abort`` does nothing
aborted    drops the bytes                             none; no trace is left once ``abort`` has returned
=========  ==========================================  ========================================================

The reactor's thread only moves references. Everything that blocks goes through the upload's ``DiskQueue``, in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import Protocol, Self

from twisted.internet.defer import CancelledError

from pkgrepo.concurrency.pools import DiskQueue
from pkgrepo.errors import PkgrepoError, SizeMismatch, TooLarge
from pkgrepo.model import BlobInfo
from pkgrepo.storage.blobs.durability import memory_file

from .digester import Digester, check_digests
from .paths import new_locator
from .slice_writer import SliceFile, SliceWriter

SMALL = 64 * 1024  # bytes hashed in the reactor's thread and kept in memory until the commit: 150 us; hops cost more


class ReadableFile(SliceFile, Protocol):
    """The file of an upload, of which readers may have descriptors."""

    def duplicate(self) -> int:
        """Return a new descriptor of the file; the caller closes it."""


class Phase(Enum):
    """The state of an upload; see the table above."""

    RECEIVING = "receiving"
    ENDING = "ending"
    SEALED = "sealed"
    DONE = "done"
    ABORTED = "aborted"


class ReceivedUpload(ABC):
    """
    The part of an L{IBlobUpload} that does not depend on where the blob is stored.

    ``before`` is how many bytes an earlier request has received that are not in the ``file``; ``recorded``: see
    L{SliceWriter}. ``on_end`` is called once, with the digester when the upload was suspended and with None otherwise.
    """

    def __init__(
        self,
        upload_id: str,
        *,
        storage: str,
        queue: DiskQueue,
        file: ReadableFile,
        digester: Digester,
        limit: int | None,
        on_end: Callable[[str, Digester | None], None],
        recorded: Mapping[str, str] | None = None,
        before: int = 0,
    ) -> None:
        self.id = upload_id
        self.offset = before + file.size
        self.data: bytes | None = None
        self._queue = queue
        self._file = file
        self._limit = limit
        self._on_end = on_end
        self._slices = SliceWriter(queue, file, digester, storage=storage, recorded=recorded)
        self._sealed: BlobInfo | None = None
        self._keeps_state = False
        self._phase = Phase.RECEIVING

    async def __aenter__(self) -> Self:
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
                self._sealed = await self._seal_rest(expected or {})
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
        await self._commit()
        return info

    async def suspend(self) -> bytes:
        """
        Make what was received durable and return the state (at most 4 KiB) from which ``resume`` goes on.

        An upload without a byte leaves nothing.

        :raises StorageFull: or ``StorageFailed``, and nothing is left
        :raises CancelledError: ``abort`` was called meanwhile
        """
        self._begin_end()
        try:
            state = await self._keep()
        except BaseException:
            await self.abort()
            raise
        self._phase = Phase.DONE
        self._on_end(self.id, self._final_digester())
        return state

    async def abort(self) -> None:
        """Remove every trace; safe to call at any time, also twice, and without effect after success."""
        if self._phase is Phase.DONE:
            return
        if self._phase is not Phase.ABORTED:
            self._phase = Phase.ABORTED
            self.data = None
            self._slices.abort()
        await self._discard()
        # After the clean-up: until it has run, a sweep must take the upload for one in use.
        self._on_end(self.id, None)

    def keep_state(self) -> None:
        """Stay resumable from the earlier state until ``forget``, whatever happens to this upload."""
        self._keeps_state = True

    async def forget(self) -> None:
        """Remove what ``keep_state`` has kept."""
        if self._keeps_state:
            self._keeps_state = False
            await self._forget()

    # For ``commit_together``

    @property
    def is_sealed(self) -> bool:
        """Whether ``commit`` is the next step."""
        return self._phase is Phase.SEALED

    @property
    def is_aborted(self) -> bool:
        """Whether it was aborted."""
        return self._phase is Phase.ABORTED

    def end_commit(self) -> None:
        """Enter the phase after a successful commit."""
        self._phase = Phase.DONE
        self.data = None
        self._on_end(self.id, None)

    def explain(self, error: OSError) -> PkgrepoError:
        """Return the domain error for a file error of the commit."""
        return self._slices.explain(error)

    # Below, or of a store

    @abstractmethod
    async def _commit(self) -> None:
        """Commit this sealed upload alone."""

    @abstractmethod
    async def _keep(self) -> bytes:
        """Make what was received durable; the state to resume from."""

    def _final_digester(self) -> Digester | None:
        """The digester that has seen all bytes of a suspended upload, if there is one."""
        return self._slices.digester

    @abstractmethod
    async def _discard(self) -> None:
        """Remove everything of an aborted upload, except the earlier state if that is kept."""

    @abstractmethod
    async def _forget(self) -> None:
        """Remove the earlier state."""

    async def _seal_rest(self, expected: Mapping[str, str]) -> BlobInfo:
        """Seal an upload whose bytes are not only in memory."""
        return await self._slices.run_last(self._seal, expected)

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
        return self._blob(self._slices.digests(), expected)

    def _blob(self, digests: Mapping[str, str], expected: Mapping[str, str]) -> BlobInfo:
        check_digests(digests, expected)
        return BlobInfo(digests["sha256"], self.offset, self._new_locator(digests["sha256"]), digests)

    def _new_locator(self, sha256: str) -> str:
        """The name of the copy that the commit makes."""
        return new_locator(sha256)
