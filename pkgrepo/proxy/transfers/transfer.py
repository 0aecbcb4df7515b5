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

A transfer that another process has begun waits for that one first, and its readers follow it, see ``sharing``.

The first three states become failed by an error; the first two also without readers, unless more than half of the
file is there. Nothing is kept then. A crash leaves what a crash during an upload leaves.

Readers read the file of the upload on their own: a slow one delays no other and takes no memory. Only the disk slows
the upstream down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from typing import Generic, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import BlobMissing, PkgrepoError, StorageFailed, UpstreamMismatch, UpstreamUnavailable
from pkgrepo.interfaces import IGrowingFiles
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.transfers.arriving import Waiters
from pkgrepo.proxy.transfers.download import Fields, Origin
from pkgrepo.proxy.transfers.sharing import Leading
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop
from pkgrepo.repositories.publish.staged import Staged

from .arriving import ArrivingBody
from .download import Download
from .following import Following
from .notices import Growing, Place, Verified
from .receiving import Context, Receiver
from .sharing import Sharing, lease_of

log = Logger()

T = TypeVar("T")


class Transfer(Generic[T]):
    """
    One transfer; ``Transfers`` makes and starts them.

    ``place`` names it in all processes, ``path`` is that of the file. ``on_end`` is called, perhaps twice, when no more
    readers should come: it is over or given up.
    """

    def __init__(
        self, download: Download[T], place: Place, *, path: str, context: Context, on_end: Callable[[], None]
    ) -> None:
        self._download = download
        self._place = place
        self._path = path
        self._context = context
        self._on_end = on_end
        self._receiver = Receiver(download, path, context=context, on_progress=self._progress)
        self._source: Receiver | Following = self._receiver  # whose bytes readers get
        self._leading: Leading | None = None
        self._growing: IGrowingFiles | None = None  # known to the leader
        self._without_delay = ExitStack()
        self._work: Deferred[None] | None = None
        self._descriptor = -1  # of the file of the upload, from the first reader on
        self._verified: BlobInfo | None = None
        self._data: bytes | None = None  # of a verified file that is small
        self._file: T | None = None
        self._failure: Failure | None = None
        self._readers = 0
        self._waiters = Waiters()
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
            followed = self._leading is not None and self._leading.followed
            self._receiver.is_left = followed and self._growing is not None
            self._give_up()
        await ended

    @property
    def route(self) -> str:
        """The name of the route that it comes from."""
        return self._download.route

    @property
    def is_verified(self) -> bool:
        """Whether readers may have all bytes of it."""
        return self._verified is not None

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
        The row of the file, when it is recorded; until then the transfer goes on, whichever readers leave.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``content``
        """
        with self._reading(), self._context.without_delay():
            while self._file is None:
                if self._failure is not None:
                    self._failure.raiseException()
                await self.wait()
            return self._file

    async def verify(self) -> Mapping[str, str]:
        """
        The digests of the file, as soon as it is verified; until then the transfer goes on, whichever readers leave.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``content``
        """
        with self._reading():
            while self._verified is None and self._file is None:
                if self._failure is not None:
                    self._failure.raiseException()
                await self.wait()
            return self.digests

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the file, as far as it is verified."""
        if self._verified is None:
            return {} if self._file is None else self._download.digests_of(self._file)
        return self._verified.digests

    @property
    def available(self) -> int:
        """How many bytes from the beginning readers may have."""
        return self._source.readable if self._verified is None else self._verified.size

    def wait(self) -> Deferred[None]:
        """A Deferred that fires when it has got further, and fails when it has failed; it may be cancelled."""
        return self._waiters.add()

    def _find_content(self, holds_parts: bool) -> ArrivingBody | bytes | T | None:
        if self._file is not None:
            return self._file
        if self._failure is not None:
            self._failure.raiseException()
        if self._data is not None:
            return self._data
        size = self._source.size if self._verified is None else self._verified.size
        if size is None or not self.available:
            return None
        if self._descriptor < 0 and self._verified is None:
            self._keep(self._source.descriptor())
        if self._descriptor < 0:  # readers wait for the row of the file
            return None
        self._source.is_read = True
        body = ArrivingBody(self, size, os.dup(self._descriptor), self._context.reactor, holds_parts=holds_parts)
        self._readers += 1
        return body

    def _keep(self, descriptor: int | None) -> None:
        self._descriptor = -1 if descriptor is None else descriptor

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

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
        size = self._source.size
        is_mostly_there = size is not None and 2 * self._source.received > size
        if not self._readers and self._verified is None and not is_mostly_there:
            self._give_up()

    def _give_up(self) -> None:
        if self._work is not None:
            self._on_end()
            self._work.cancel()

    def _progress(self) -> None:
        if self._leading is not None:
            self._leading.progress()
        self._wake()

    def _wake(self) -> None:
        self._waiters.wake(self._failure)

    # The work

    async def _run(self, permit: AbstractAsyncContextManager[None]) -> None:
        try:
            async with self._download.stage() as staged:
                sharing = self._context.sharing
                working = self._share(sharing, staged, permit) if sharing is not None else self._fetch(staged, permit)
                self._file = await working
                for listener in self._listeners:
                    listener(self._file)
        except CancelledError:
            why = "the transfer of its file was given up"
            self._failure = Failure(UpstreamUnavailable(self._download.upstream, why))
        except Exception as error:  # noqa: BLE001 - the readers get it
            self._failure = Failure()
            if isinstance(error, UpstreamMismatch):
                log.warn("{path!r} was not kept: {reason}", path=self._path, reason=str(error))
            elif isinstance(error, PkgrepoError):  # in the responses; of upstreams that fail the log has one line
                log.debug("{path!r} was not transferred: {reason}", path=self._path, reason=str(error))
            else:
                log.failure("the transfer of {path!r} failed", path=self._path)
        finally:
            self._work = None
            self._close_descriptor()
            self._without_delay.close()
            self._on_end()
            self._wake()

    async def _fetch(self, staged: Staged, permit: AbstractAsyncContextManager[None]) -> T:
        async with permit:
            upload, self._verified = await self._receiver.receive(staged)
        self._data = upload.data
        if self._data is None and self._descriptor < 0:
            self._keep(upload.descriptor())
        self._progress()
        assert self._receiver.origin is not None
        return await self._download.record(staged, self._verified, self._receiver.origin.headers)

    # With other processes

    async def _share(self, sharing: Sharing, staged: Staged, permit: AbstractAsyncContextManager[None]) -> T:
        """Fetch the file, unless another process does or has done so."""
        lease, followed, leads = lease_of(self._place), None, True
        if not await sharing.leases.acquire(lease):
            refuse_proxy_loop(self._place[0], self.route)
            growing = staged.growing
            with sharing.follow(self._place, route=self.route, growing=growing, on_change=self._follow) as following:
                self._source = following
                leads = await following.acquire(lease)
                followed = following
        if not leads:
            log.info("{path!r} is fetched here, too: the process that fetches it is silent", path=self._path)
            self._read_own()
            return await self._download.find() or await self._fetch(staged, permit)
        failure: BaseException | None = None
        self._growing = staged.growing
        leading = sharing.lead(self._place, self, exposes=self._growing is not None)
        try:
            found = await self._download.find()
            if found is not None:
                if followed is not None and followed.is_read and self._verified is None:
                    digests = {**self._download.expected, **self._download.digests_of(found)}
                    await self._copy(followed, staged, digests)
                return found
            if followed is not None and self._verified is not None and self._descriptor >= 0:
                return await self._record_copy(followed, staged, self._verified)
            if followed is not None:
                await self._take_over(followed, staged)
            self._leading = leading
            return await self._fetch(staged, permit)
        except BaseException as error:
            failure = error
            raise
        finally:
            self._leading = None
            sharing.end(self._place, leading, failure)

    def _follow(self) -> None:
        """Use what the leader has told."""
        following = self._source
        assert isinstance(following, Following)
        if following.latest is not None:
            self._download.adopt(following.latest.source)
        if following.verified is not None:
            told = following.verified
            self._download.adopt(told.source)
            if self._descriptor < 0:
                self._keep(following.descriptor())
            self._verified = BlobInfo(told.sha256, told.size, told.locator, told.digests)
        self._wake()

    async def _take_over(self, following: Following, staged: Staged) -> None:
        """Go on where a leader has ended."""
        told, growing = following.latest, staged.growing
        self._receiver.is_read = following.is_read
        self._read_own()
        if told is None or growing is None:
            return
        try:
            algorithms = (*self._download.expected, *self._download.algorithms)
            upload = await growing.take_over(told.upload, told.readable, algorithms)
        except (BlobMissing, StorageFailed):
            return
        log.debug("{path!r} is fetched on from byte {offset}", path=self._path, offset=told.readable)
        self._receiver.take_over(upload, Origin(Fields(told.fields), told.size, told.etag, told.is_plain))

    async def _record_copy(self, following: Following, staged: Staged, verified: BlobInfo) -> T:
        """Record what a leader has verified and did not record. Readers have the same bytes as the copy."""
        copy = await self._copy(following, staged, {**verified.digests, "sha256": verified.sha256})
        log.debug("{path!r} is recorded from the bytes that another process has verified", path=self._path)
        assert following.latest is not None
        return await self._download.record(staged, copy, Fields(following.latest.fields))

    async def _copy(self, following: Following, staged: Staged, digests: Mapping[str, str]) -> BlobInfo:
        """
        Stage a copy of what readers have of a leader's file, which is the whole file if it has these digests.

        A copy, since the leader may have ended at any step of its commit, after which the file may be swept.

        :raises UpstreamUnavailable: it is not, or that is not known
        """
        assert following.latest is not None, "readers have bytes of it"
        self._verified = await self._receiver.copy(staged, self._descriptor, following.latest.size, digests)
        self._wake()
        return self._verified

    def _read_own(self) -> None:
        """Have readers read what this process receives."""
        self._verified, self._source = None, self._receiver
        if not self._receiver.is_read:
            self._close_descriptor()

    # As L{Led}

    def join(self) -> None:
        """Count a process with readers."""
        self._readers += 1
        # The others see small files when they are recorded.
        self._without_delay.enter_context(self._context.without_delay())

    def notice(self) -> Growing | Verified | None:
        """What may be read of it; None: nothing yet."""
        done, origin = self._verified, self._receiver.origin
        if done is not None and origin is not None:
            upload, source = self._receiver.upload_id, self._download.describe()
            return Verified(self._place, upload, done.sha256, done.size, done.locator, dict(done.digests), source)
        if origin is None or origin.size is None or not self._receiver.readable:
            return None
        return Growing(
            self._place,
            upload=self._receiver.upload_id,
            readable=self._receiver.readable,
            size=origin.size,
            etag=origin.etag,
            is_plain=origin.is_plain,
            fields=Fields.of(origin.headers).values,
            source=self._download.describe(),
        )

    async def expose(self) -> bool:
        """Let other processes open its file. Returns whether they can."""
        return self._growing is not None and await self._receiver.expose(self._growing)
