"""
The transfer of one file: one body of the upstream, one stored blob, and any number of readers.

==========  ===================================================  ==============================================
state       readers get                                          next state by
==========  ===================================================  ==============================================
waiting     nothing yet                                          a permit: receiving
receiving   a file of known size: what is written of it, but     the right digests and size: verified
            not its last byte; of unknown size, or small:
            nothing yet
verified    all bytes                                            ``record``: done
done        the row of the file                                  -
failed      the error; those that have bytes already lose        -
            their connections
==========  ===================================================  ==============================================

The first three states become failed by an error; the first two also when nobody reads any more, unless more than half
of the file is there. Nothing is kept then. A crash leaves what a crash during an upload leaves.

Readers read the file of the upload on their own: a slow one delays nobody and takes no memory. Only the disk slows the
upstream down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Generic, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError, UpstreamMismatch, UpstreamUnavailable
from pkgrepo.model import BlobInfo

from .arriving import ArrivingBody
from .download import Download
from .receiving import Context, Receiver

log = Logger()

T = TypeVar("T")


class Transfer(Generic[T]):
    """
    One transfer; `Transfers` makes and starts them.

    ``on_end`` is called, perhaps twice, when no more readers should come: it is over or given up.
    """

    def __init__(self, download: Download[T], path: str, *, context: Context, on_end: Callable[[], None]) -> None:
        self._download = download
        self._path = path
        self._context = context
        self._on_end = on_end
        self._receiver = Receiver(download, path, context=context, on_progress=self._wake)
        self._work: Deferred[None] | None = None
        self._descriptor = -1  # of the file of the upload, from the first reader on
        self._verified: BlobInfo | None = None
        self._data: bytes | None = None  # of a verified file that is small
        self._file: T | None = None
        self._failure: Failure | None = None
        self._readers = 0
        self._waiting: list[Deferred[None]] = []
        self._listeners: list[Callable[[T], None]] = []

    def start(self, permit: AbstractAsyncContextManager[None]) -> None:
        """Begin, when there is a permit."""
        self._work = Deferred.fromCoroutine(self._run(permit))

    async def stop(self) -> None:
        """Give up, unless it is verified. Returns when nothing is left, or all is recorded."""
        work = self._work
        if work is None:
            return
        ended: Deferred[None] = Deferred()
        work.addBoth(ended.callback)
        if self._verified is None:
            self._give_up()
        await ended

    @property
    def route(self) -> str:
        """The name of the route that it comes from."""
        return self._download.route

    def when_recorded(self, listener: Callable[[T], None]) -> None:
        """Call a function with the row of the file when it is recorded, in the reactor's thread; not if it fails."""
        if self._file is None:
            self._listeners.append(listener)
        else:
            listener(self._file)

    # For readers

    async def content(self, *, holds_parts: bool = False) -> ArrivingBody | bytes | T:
        """
        The file, as soon as there is anything to send: its row, its verified bytes if they are few, or what arrives.

        With ``holds_parts`` see L{ArrivingBody}. Cancelling this is how a reader leaves who has nothing yet.

        :raises NotFound: the upstream has no such file; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        with self._reading():
            while True:
                found = self._find_content(holds_parts)
                if found is not None:
                    return found
                await self.wait()

    async def finish(self) -> T:
        """
        The row of the file, when it is recorded; until then it is wanted, whoever else leaves.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``content``
        """
        with self._reading(), self._context.hurrying():
            while self._file is None:
                if self._failure is not None:
                    self._failure.raiseException()
                await self.wait()
            return self._file

    async def verify(self) -> Mapping[str, str]:
        """
        The digests of the file, as soon as it is verified; until then it is wanted, whoever else leaves.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``content``
        """
        with self._reading():
            while self._verified is None:
                if self._failure is not None:
                    self._failure.raiseException()
                await self.wait()
            return self._verified.digests

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the file, as far as it is verified."""
        return {} if self._verified is None else self._verified.digests

    @property
    def available(self) -> int:
        """How many bytes from the beginning readers may have."""
        return self._receiver.readable if self._verified is None else self._verified.size

    def wait(self) -> Deferred[None]:
        """A Deferred that fires when it has got further, and fails when it has failed; it may be cancelled."""
        waiting: Deferred[None] = Deferred(self._forget)
        self._waiting.append(waiting)
        return waiting

    def _find_content(self, holds_parts: bool) -> ArrivingBody | bytes | T | None:
        if self._file is not None:
            return self._file
        if self._failure is not None:
            self._failure.raiseException()
        if self._data is not None:
            return self._data
        size = self._receiver.size if self._verified is None else self._verified.size
        if size is None or not self.available or not self._open():
            return None
        self._receiver.is_read = True
        body = ArrivingBody(self, size, os.dup(self._descriptor), self._context.reactor, holds_parts=holds_parts)
        self._readers += 1
        return body

    def _open(self) -> bool:
        """Whether there is a descriptor for readers; else they wait for the row of the file."""
        if self._descriptor < 0 and self._verified is None:
            self._keep(self._receiver.descriptor())
        return self._descriptor >= 0

    def _keep(self, descriptor: int | None) -> None:
        self._descriptor = -1 if descriptor is None else descriptor

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._readers += 1
        try:
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        """Count a reader that needs no more bytes."""
        self._readers -= 1
        if not self._readers and self._verified is None and not self._is_mostly_there:
            self._give_up()

    @property
    def _is_mostly_there(self) -> bool:
        size = self._receiver.size
        return size is not None and 2 * self._receiver.received > size

    def _give_up(self) -> None:
        if self._work is not None:
            self._on_end()
            self._work.cancel()

    def _forget(self, waiting: Deferred[None]) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if each.called:  # cancelled by what one before it did
                continue
            if self._failure is not None:
                each.errback(self._failure)
            else:
                each.callback(None)

    # The work

    async def _run(self, permit: AbstractAsyncContextManager[None]) -> None:
        try:
            async with self._download.stage() as staged:
                async with permit:
                    upload, self._verified = await self._receiver.receive(staged)
                self._data = upload.data
                if self._data is None and self._descriptor < 0:
                    self._keep(upload.descriptor())
                self._wake()
                assert self._receiver.origin is not None
                self._file = await self._download.record(staged, self._verified, self._receiver.origin.headers)
                for listener in self._listeners:
                    listener(self._file)
        except CancelledError:
            self._failure = Failure(
                UpstreamUnavailable(self._download.upstream, "the transfer of its file was given up")
            )
        except Exception as error:  # noqa: BLE001 - the readers get it
            self._failure = Failure()
            if isinstance(error, UpstreamMismatch):
                log.warn("{path!r} was not kept: {reason}", path=self._path, reason=str(error))
            elif isinstance(error, PkgrepoError):  # in the answers; of upstreams that fail the log has one line
                log.debug("{path!r} was not transferred: {reason}", path=self._path, reason=str(error))
            else:
                log.failure("the transfer of {path!r} failed", path=self._path)
        finally:
            self._work = None
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            self._on_end()
            self._wake()
