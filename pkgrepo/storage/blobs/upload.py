"""
An upload into a filesystem store, from its first byte to its commit, and its state while it is suspended.

The phases of an upload are in `receiving`. The catalog stores the state between two requests.

``abort`` needs no lock: its clean-up runs after every call queued before it, and also undoes a commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from attrs import frozen
from twisted.internet.defer import CancelledError
from zope.interface import implementer

from pkgrepo.interfaces import IBlobUpload
from pkgrepo.storage.blobs.paths import FIRST_FILE, is_upload_file
from pkgrepo.storage.blobs.receiving import Phase, ReceivedUpload
from pkgrepo.storage.blobs.upload_file import UploadFile, place_together
from pkgrepo.storage.pools import DiskQueue

VERSION = 1


class _Wire(msgspec.Struct, omit_defaults=True):
    version: int
    offset: int
    limit: int | None
    digests: dict[str, str]
    file: str = FIRST_FILE


@frozen
class UploadState:
    """
    The first ``offset`` bytes are durable and have these ``digests``; the upload may have at most ``limit`` bytes.
    They are in the file with the name ``file`` in the upload's folder.

    With the digests, another process can commit the upload without reading the bytes again, if no more bytes arrive.
    """

    offset: int
    limit: int | None
    digests: Mapping[str, str]
    file: str = FIRST_FILE

    def encode(self) -> bytes:
        """Return at most 4 KiB: the digests of all of hashlib's algorithms have less than 2 KiB of hex."""
        return msgspec.json.encode(_Wire(VERSION, self.offset, self.limit, dict(self.digests), self.file))

    @classmethod
    def decode(cls, data: bytes) -> UploadState:
        """
        Return the state that ``encode`` wrote.

        :raises ValueError: the data has another form
        """
        wire = msgspec.json.decode(data, type=_Wire)  # its errors are ValueErrors
        if wire.version != VERSION or wire.offset < 0 or "sha256" not in wire.digests or not is_upload_file(wire.file):
            raise ValueError("not the state of an upload")
        return cls(wire.offset, wire.limit, wire.digests, wire.file)


@implementer(IBlobUpload)
class FilesystemUpload(ReceivedUpload):
    """One upload; ``FilesystemBlobStore`` makes them."""

    _file: UploadFile

    async def expose(self) -> None:
        """Give the file a name, under which other processes find it. :raises StorageFull: or ``StorageFailed``"""
        if self._phase is not Phase.RECEIVING or not self.readable:
            raise RuntimeError("the upload has no bytes to read yet, or has ended")
        try:
            await self._queue.run(self._file.name)
        except OSError as error:
            raise self._slices.explain(error) from error

    def reread(self) -> None:
        """Compute the digests of the bytes that another process has left in the file, before those of new ones."""
        self._slices.reread()

    # For ``commit_together``

    def begin_commit(self, queue: DiskQueue | None = None) -> DiskQueue:
        """
        Enter the phase of the commit, which runs in ``queue`` or the upload's own; returns that queue.

        The queue of a sealed upload is empty. Calls of this upload from now on wait for the commit.
        """
        self._phase = Phase.ENDING
        self._queue = queue or self._queue
        return self._queue

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

    async def _commit(self) -> None:
        await commit_together([self])

    async def _keep(self) -> bytes:
        state = await self._slices.run_last(self._keep_file)
        return state.encode()

    async def _discard(self) -> None:
        await self._queue.run(self._file.discard)

    def keep_state(self) -> None:
        """See L{ReceivedUpload.keep_state}: the file keeps its name."""
        super().keep_state()
        self._file.keeps_name = True

    async def _forget(self) -> None:
        self._file.keeps_name = False
        await self._queue.run(self._file.unname)

    def _keep_file(self) -> UploadState:
        """Runs on a disk thread."""
        digests = self._slices.digests()
        if self._file.size:
            self._file.keep()
        return UploadState(self._file.size, self._limit, digests, self._file.file)


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
