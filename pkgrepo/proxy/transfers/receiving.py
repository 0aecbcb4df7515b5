"""
Receives a file from an upstream into an upload, and verifies it.

After a broken connection the rest is asked for by a range. If the upstream sends another file instead, that is received
from its beginning, unless a client has read of the one before. So is a file that is wrong, if there is another place to
have it from.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from pkgrepo.archives.kinds import check_kind
from pkgrepo.archives.source import Source
from pkgrepo.errors import (
    DigestMismatch,
    Invalid,
    PkgrepoError,
    UpstreamFailed,
    UpstreamMismatch,
    UpstreamTimeout,
    UpstreamTruncated,
    UpstreamUnavailable,
)
from pkgrepo.interfaces import IBlobUpload, IGrowingFiles, IUpstreamResponse
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.transfers.download import Origin, check_first, check_rest, fields_for_rest
from pkgrepo.repositories.publish.staged import Staged

from .download import Download
from .sharing import Sharing

SMALL = 64 * 1024  # bytes; no client reads a file up to this before it is verified: it takes one or two packets more
COPIED = 256 * 1024  # bytes that are read at once, of a file that was just written: 50 us
RESUME_PAUSES_S = (0.0, 0.5, 2.0)  # before each request for the rest; the first failure is usually the only one

T = TypeVar("T")

_STRONG = frozenset(("sha256", "sha512"))  # of these, one shows that bytes are the whole file
_ENDED = "the process that fetched its file has ended, and nothing shows that the whole was read"
_BROKEN = (UpstreamTruncated, UpstreamTimeout, UpstreamUnavailable)


@frozen(kw_only=True)
class Context:
    """
    What transfers use of the process. There are as many ``resume_pauses_s`` as resumptions of one transfer.

    Files are recorded sooner within a block of ``without_delay``. Without ``sharing`` there are no other processes.
    """

    reactor: Any
    sharing: Sharing | None = None
    without_delay: Callable[[], AbstractContextManager[None]] = nullcontext
    resume_pauses_s: Sequence[float] = RESUME_PAUSES_S


class Receiver:
    """
    One file on its way into a storage.

    ``on_progress`` is called when there is more to read. ``is_read`` is set by the code that lets others read bytes
    that are not verified; ``is_left`` lets another process go on after an error, with the bytes that there are.
    """

    def __init__(
        self, download: Download[Any], path: str, *, context: Context, on_progress: Callable[[], None]
    ) -> None:
        self.is_read = False
        self.is_left = False
        self.origin: Origin | None = None
        self._download = download
        self._path = path
        self._context = context
        self._on_progress = on_progress
        self._upload: IBlobUpload | None = None
        self._announced: Deferred[Mapping[str, str]] | None = None
        self._sealing = False
        self._framed = True

    @property
    def size(self) -> int | None:
        """The size of the file in bytes; None if it is not known yet."""
        return None if self.origin is None else self.origin.size

    @property
    def received(self) -> int:
        """How many bytes have arrived."""
        return 0 if self._upload is None else int(self._upload.offset)

    @property
    def readable(self) -> int:
        """How many bytes may be read before the file is verified: not the last one, so that it does not look whole."""
        if self._upload is None or self.size is None or self.size <= SMALL or not self._download.shared:
            return 0
        return min(int(self._upload.readable), self.size - 1)

    def descriptor(self) -> int | None:
        """
        A new descriptor of the ``readable`` bytes, which the caller closes.

        None when the file is about to be verified.

        :raises StorageFailed: there is none
        """
        return None if self._sealing or self._upload is None else self._upload.descriptor()

    @property
    def upload_id(self) -> str:
        """The id of the upload, once something is readable."""
        assert self._upload is not None
        return str(self._upload.id)

    async def expose(self, growing: IGrowingFiles) -> bool:
        """
        Let other processes read the upload. Returns False when it is about to be verified.

        :raises StorageFull, StorageFailed: it has failed
        """
        if self._sealing or self._upload is None:
            return False
        self.is_read = True
        await growing.expose(self._upload)
        return True

    def take_over(self, upload: IBlobUpload, origin: Origin) -> None:
        """Begin with an upload that another process has left."""
        self._upload, self.origin = upload, origin
        self._ask_announced(origin)
        upload.share(self._on_progress)

    async def copy(self, staged: Staged, descriptor: int, size: int, digests: Mapping[str, str]) -> BlobInfo:
        """
        Stage a copy of the first ``size`` bytes of a file that another process has received, if it has these digests.

        :raises UpstreamUnavailable: it has others, or is shorter, or cannot be read, or no strong digest is given
        :raises StorageFull: or ``StorageFailed``
        """
        if not digests.keys() & _STRONG:
            raise UpstreamUnavailable(self._download.upstream, _ENDED)
        algorithms = (*self._download.expected, *self._download.algorithms)
        upload = self._upload = staged.begin(algorithms, expect_size=size)
        expected = {name: digest for name, digest in digests.items() if name in ("sha256", *algorithms)}
        try:
            while chunk := os.pread(descriptor, min(COPIED, size - upload.offset), upload.offset):
                upload.write(chunk)
                await upload.drained()
            info: BlobInfo = await upload.seal(expected)
        except BaseException as error:
            await self._discard()
            if isinstance(error, DigestMismatch | OSError):
                raise UpstreamUnavailable(self._download.upstream, _ENDED) from None
            raise
        staged.add_sealed(upload, info)
        return info

    async def receive(self, staged: Staged) -> tuple[IBlobUpload, BlobInfo]:
        """
        Receive the whole file. Returns the sealed upload, which belongs to ``staged``; an error leaves nothing.

        :raises NotFound: the upstream has no such file; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        try:
            while True:
                try:
                    await self._receive_all(staged)
                    return await self._seal(staged)
                except UpstreamFailed as error:
                    again = self._download.again(error)
                    if self.is_read or not again:
                        raise
                await self._discard()
        except BaseException:
            if self.is_left and self._upload is not None:
                await self._leave(self._upload)
            await self._discard()
            raise

    async def _leave(self, upload: IBlobUpload) -> None:
        with suppress(PkgrepoError, CancelledError):  # then nothing is left
            await upload.suspend()

    async def _receive_all(self, staged: Staged) -> None:
        pauses = iter(self._context.resume_pauses_s)
        while True:
            try:
                return await self._receive_body(staged)
            except _BROKEN:
                pause_s = next(pauses, None)
                if self._upload is None or pause_s is None or (self.is_read and self._resuming_fields() is None):
                    raise
            await deferLater(self._context.reactor, pause_s)

    async def _discard(self) -> None:
        """Remove what was received."""
        upload, self._upload, self.origin, self._sealing = self._upload, None, None, False
        announced, self._announced = self._announced, None
        if announced is not None:
            announced.addErrback(lambda _: None)
            announced.cancel()
        if upload is not None:
            await upload.abort()

    def _resuming_fields(self) -> dict[str, str] | None:
        """Header fields that ask for the rest; None if all must be asked for."""
        return None if self.origin is None else fields_for_rest(self._download, self.origin, self.received)

    async def _receive_body(self, staged: Staged) -> None:
        fields, origin = self._resuming_fields(), self.origin
        async with self._download.open(fields or {}) as response:
            held: int | None = None
            if fields is not None and origin is not None:
                held = check_rest(self._download, self._path, origin, self.received, response)
            if held is None:
                held = 0
                await self._begin(staged, response)
            await self._copy(response, held)

    async def _begin(self, staged: Staged, response: IUpstreamResponse) -> None:
        """Begin the upload, or begin again with another one."""
        if self.is_read:
            raise UpstreamMismatch(self._download.upstream, "its file changed while it was read")
        origin = check_first(self._download, self._path, response)
        previous, self._upload = self._upload, None
        if previous is not None:
            await previous.abort()
        algorithms = (*self._download.expected, *self._download.algorithms)
        self.origin = origin
        self._ask_announced(origin)
        self._upload = staged.begin(algorithms, expect_size=origin.size)
        if origin.size is not None and origin.size > SMALL and self._download.shared:
            self._upload.share(self._on_progress)

    def _ask_announced(self, origin: Origin) -> None:
        if self._download.announced is not None:
            if self._announced is not None:
                self._announced.addErrback(lambda _: None)
                self._announced.cancel()
            self._announced = Deferred.fromCoroutine(_coroutine(self._download.announced(origin.headers)))

    async def _copy(self, response: IUpstreamResponse, held: int) -> None:
        """Write the body without its first ``held`` bytes, which are there already."""
        upload, size, route = self._upload, self.size, self._download.upstream
        assert upload is not None
        async for chunk in response.chunks():
            new = chunk[held:] if held else chunk
            held = max(held - len(chunk), 0)
            if size is not None and upload.offset + len(new) > size:
                raise UpstreamMismatch(route, f"its file has more bytes than the {size} that were announced")
            upload.write(new)
            await upload.drained()
        self._framed = response.framed
        # Without any length, the end of the connection is the end of the file only if a digest confirms it.
        confirmed = response.framed or bool(self._download.expected) or self._announced is not None
        if not (confirmed if size is None else upload.offset == size):
            raise UpstreamTruncated(route, "its file ended too early")

    async def _seal(self, staged: Staged) -> tuple[IBlobUpload, BlobInfo]:
        upload = self._upload
        assert upload is not None
        announced: Mapping[str, str] = {} if self._announced is None else await self._announced
        self._announced = None
        expected = {**self._download.expected, **announced}
        if self.size is None and not self._framed and not expected:
            raise UpstreamTruncated(self._download.upstream, "its file ended too early")
        self._sealing = True
        try:
            info: BlobInfo = await upload.seal(expected)
        except DigestMismatch as error:
            reason = f"its file has the {error.algorithm} digest {error.actual} where {error.expected} was announced"
            raise UpstreamMismatch(self._download.upstream, reason) from None
        if not expected and (info.size or not self._download.may_be_empty):
            self._check_kind(upload)
        staged.add_sealed(upload, info)
        return upload, info

    def _check_kind(self, upload: IBlobUpload) -> None:
        """
        Check that a file without any digest is what its name says, not the sentence of a portal, and is not empty.

        :raises UpstreamMismatch: it is not
        """
        data: bytes | None = upload.data
        content = int(upload.descriptor()) if data is None else data
        try:
            check_kind(Source(content, "its file"), self._path)
        except Invalid as error:
            raise UpstreamMismatch(self._download.upstream, str(error)) from None
        finally:
            if isinstance(content, int):
                os.close(content)


async def _coroutine(work: Awaitable[T]) -> T:
    return await work
