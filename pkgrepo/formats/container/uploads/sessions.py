"""
An upload that takes several requests, in the hands of one of them.

The request that works on it holds a lease in the catalog and renews it, so that another one, on whichever worker,
waits for its turn rather than mixing its bytes in. A lease that a killed worker left behind runs out.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import BlobMissing, Conflict, PkgrepoError
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.answers import Refusal
from pkgrepo.http.reading.body import Body, BodyLost
from pkgrepo.http.reading.ranges import ChunkRange
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.blobs import uploads
from pkgrepo.storage.catalog.blobs.uploads import UploadSession

T = TypeVar("T")

LEASE_S = 30  # seconds
RENEW_S = 10  # seconds; two renewals may come late
WAIT_S = 35  # seconds that a second request waits: longer than a lease that nobody renews
ASK_S = 0.25  # seconds between two looks at a lease that somebody else holds


class Sessions:
    """Finds uploads and hands them out, one holder at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @asynccontextmanager
    async def hold(self, uid: str, request: Request) -> AsyncIterator[tuple[UploadSession, str]]:
        """
        The upload, the request's alone within the block, and the name under which it is held.

        The block ends with ``keep``, ``end`` or an error, which leaves the upload as it was.

        :raises Refusal: it is gone; :raises Conflict: somebody else works on it all the time, or the client has left
        before it was its turn
        """
        holder = secrets.token_hex(8)
        session = await self._lease(uid, holder, request)
        renewal = LoopingCall(self._renew, uid, holder)
        renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # what fails here fails at the end too
        try:
            yield session, holder
        except BaseException:
            await self._services.catalog.write(uploads.release_lease, uid, holder)
            raise
        finally:
            renewal.stop()

    async def _lease(self, uid: str, holder: str, request: Request) -> UploadSession:
        clock = self._services.clock
        give_up = clock.now_ms() + WAIT_S * 1000
        while True:
            now_ms = clock.now_ms()
            session = await self._services.catalog.write(
                uploads.lease_upload, uid, holder, now_ms + LEASE_S * 1000, now_ms
            )
            if session is None:
                raise unknown(uid)
            if not session.leased:
                return session
            if now_ms > give_up:
                raise Conflict("another request is writing to this upload")
            await deferLater(_reactor, ASK_S)
            if request.gone:
                raise Conflict("the client has left while it waited for its turn")

    def _renew(self, uid: str, holder: str) -> Deferred[bool]:
        now_ms = self._services.clock.now_ms()
        renewed: Awaitable[bool] = self._services.catalog.write(
            uploads.renew_lease, uid, holder, now_ms + LEASE_S * 1000, now_ms
        )

        async def wait() -> bool:
            return await renewed

        return Deferred.fromCoroutine(wait())

    async def resume(self, staged: Staged, session: UploadSession) -> IBlobUpload:
        """The bytes so far, to go on with. :raises Refusal: they are gone, and so is the upload now"""
        try:
            return await staged.resume(session.uid, session.state)
        except BlobMissing:
            await self.end(session.uid)
            raise unknown(session.uid) from None

    async def keep(self, upload: IBlobUpload, uid: str, holder: str) -> int:
        """
        Let the upload rest; how many bytes it has, which are durable.

        :raises Conflict: the lease was lost meanwhile
        """
        state = await upload.suspend()
        position: int = upload.offset
        kept = await self._services.catalog.write(
            uploads.keep_upload, uid, holder, state, position, self._services.clock.now_ms()
        )
        if not kept:
            raise Conflict("the upload was taken over by another request")
        return position

    async def end(self, uid: str) -> bool:
        """Forget the upload; whether there was one."""
        return await self._services.catalog.write(uploads.remove_upload, uid)


async def pour(body: Body, upload: IBlobUpload) -> BodyLost | None:
    """Write a request's body to an upload; when the client leaves before its end, that is returned, not raised."""
    try:
        async for chunk in body:
            upload.write(chunk)
            await upload.drained()
    except BodyLost as lost:
        return lost
    return None


def check_start(wanted: ChunkRange | None, session: UploadSession, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    """Hold a chunk's range against what is there. :raises Refusal: it does not go on where the upload ends"""
    if wanted is not None and wanted.start != session.position:
        sentence = f"the upload has {session.position} bytes, and the chunk begins at {wanted.start}"
        raise Refusal(416, sentence, "RANGE_INVALID", headers=headers)


def check_length(wanted: ChunkRange | None, count: int) -> None:
    """Hold a chunk's range against its bytes. :raises Refusal: there are more or fewer"""
    if wanted is not None and wanted.length != count:
        raise Refusal(400, f"the range has {wanted.length} bytes, and the chunk {count}", "SIZE_INVALID")


async def to_the_end(work: Awaitable[T]) -> T:
    """
    The result of ``work``, which goes on when the client leaves: what has arrived is kept for its return.

    What it raises is the client's business alone, so that nothing is logged once that has left.
    """

    async def run() -> tuple[T | None, Exception | None]:
        try:
            return await work, None
        except (PkgrepoError, Refusal) as error:
            return None, error

    result, error = await shield(run())
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only where T is


def unknown(uid: str) -> Refusal:
    """The refusal for an upload that is not there, or not this caller's."""
    return Refusal(404, f"upload {uid[:64]!r} is unknown", "BLOB_UPLOAD_UNKNOWN")
