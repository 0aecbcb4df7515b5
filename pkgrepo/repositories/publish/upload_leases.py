"""
Leases of uploads that take several requests: one request at a time writes to an upload.

The request that works on an upload holds a lease in the catalog and renews it. Another request, in whichever process,
waits until the lease is released. A lease that a killed worker left behind expires.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from attrs import define, frozen
from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater

from pkgrepo.errors import BlobMissing, Conflict, PkgrepoError
from pkgrepo.interfaces import IBlobUpload, ICatalog
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.blobs import uploads
from pkgrepo.storage.catalog.blobs.uploads import UploadSession

from .staged import Staged

LEASE_S = 12  # seconds; who comes after a worker that was killed waits no longer
RENEW_S = 4  # seconds; two renewals may come late
WAIT_S = 15  # seconds that a second request waits: longer than a lease that is not renewed
POLL_S = 0.25  # seconds between two attempts to get a lease that another request holds


@define
class UploadUnknown(PkgrepoError):  # noqa: N818 - named for what is the case
    """There is no such upload, or it is not this caller's."""

    uid: str

    def __str__(self) -> str:
        return f"upload {self.uid[:64]!r} is unknown"


class UploadLeases:
    """Grants leases, each to one request at a time."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

    @asynccontextmanager
    async def hold(self, uid: str, client_gone: Callable[[], bool]) -> AsyncIterator[Lease]:
        """
        Hold the lease of an upload within the block.

        The block ends with L{Lease.save}, L{Lease.remove} or an error, which releases the lease and leaves the upload
        as it was.

        :raises UploadUnknown: there is no such upload
        :raises Conflict: another request kept the lease for ``WAIT_S``, or the client left while it waited
        """
        holder = secrets.token_hex(8)
        session = await self._acquire(uid, holder, client_gone)
        renewal = LoopingCall(lambda: Deferred.fromCoroutine(self._renew(uid, holder)))
        renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # a lease that is lost fails ``save``
        try:
            yield Lease(session, holder, self._catalog, self._clock)
        except BaseException:
            await self._catalog.write(uploads.release_lease, uid, holder)
            raise
        finally:
            renewal.stop()

    async def cancel(
        self,
        uid: str,
        staging: AbstractAsyncContextManager[Staged],
        client_gone: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Remove an upload with its bytes; ``staging`` stages in its repository.

        :raises UploadUnknown: there is no such upload; :raises Conflict: see ``hold``
        """
        async with self.hold(uid, client_gone) as lease, staging as staged:
            await lease.discard(await lease.resume(staged))

    async def _acquire(self, uid: str, holder: str, client_gone: Callable[[], bool]) -> UploadSession:
        deadline_ms = self._clock.now_ms() + WAIT_S * 1000
        while True:
            now_ms = self._clock.now_ms()
            session: UploadSession | None = await self._catalog.write(
                uploads.lease_upload, uid, holder, now_ms + LEASE_S * 1000, now_ms
            )
            if session is None:
                raise UploadUnknown(uid)
            if not session.leased:
                return session
            if now_ms > deadline_ms:
                raise Conflict("another request is writing to this upload")
            await deferLater(_reactor, POLL_S)
            if client_gone():
                raise Conflict("the client has left while it waited for its turn")

    async def _renew(self, uid: str, holder: str) -> None:
        now_ms = self._clock.now_ms()
        await self._catalog.write(uploads.renew_lease, uid, holder, now_ms + LEASE_S * 1000, now_ms)


@frozen
class Lease:
    """An upload that this request alone may write to; ``session`` is its state when the lease was granted."""

    session: UploadSession
    _holder: str
    _catalog: ICatalog
    _clock: Clock

    async def resume(self, staged: Staged) -> IBlobUpload:
        """
        The bytes so far, to append to.

        They stay, also after a commit, until ``IBlobUpload.forget``: what a client was told to be received must not be
        lost if this process is killed, or has no room for more.

        :raises UploadUnknown: they are lost, and the upload is removed
        """
        try:
            upload = await staged.resume(self.session.uid, self.session.state, abandoned=self.session.abandoned)
        except BlobMissing:
            await self.remove()
            raise UploadUnknown(self.session.uid) from None
        upload.keep_state()
        return upload

    async def save(self, upload: IBlobUpload) -> int:
        """
        Make the bytes so far durable and release the lease; returns how many they are.

        :raises Conflict: the lease had expired and another request has taken it
        """
        state = await upload.suspend()
        position: int = upload.offset
        saved = await self._catalog.write(
            uploads.save_upload, self.session.uid, self._holder, state, position, self._clock.now_ms()
        )
        if not saved:
            raise Conflict("the upload was taken over by another request")
        return position

    async def discard(self, upload: IBlobUpload) -> None:
        """Remove the upload with its bytes; these stay if its row cannot be removed."""
        await upload.abort()
        await self.remove()
        await upload.forget()

    async def remove(self) -> None:
        """Remove the upload's row unless another request has taken the lease; the store sweeps the bytes."""
        await self._catalog.write(uploads.remove_leased_upload, self.session.uid, self._holder)
