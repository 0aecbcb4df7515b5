"""
Files that never change: fetched once for all who want them, verified, and kept as ordinary files of the proxy.

===========================  =====================================================================================
the routes answer            the client gets
===========================  =====================================================================================
200 by one                   that file, while it arrives; later routes are not asked
404 or 410 by all            404, also for ``negative_ttl`` without asking again
a failure                    502, 503 or 504, and nothing is remembered; later routes are asked if all are replicas
200, and a file with         after bytes were sent: an aborted connection, and the next time nothing before the file
another digest               is verified; else the file once more, then as after a failure
===========================  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
from attrs import evolve

from pkgrepo.errors import NotFound, UpstreamFailed, UpstreamMismatch
from pkgrepo.model import BlobInfo, File, Repository
from pkgrepo.proxy.addressed.walk import Context
from pkgrepo.proxy.remote_files import Keeper, MistrustedFiles, RemoteFile, is_former
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Headers
from pkgrepo.proxy.transfers.transfer import Transfer
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.usage_counts import CacheCounts

from .request import FileRequest
from .walk import Walk, with_digests

T = TypeVar("T")


class AddressedFiles:
    """The files of all proxies that never change."""

    def __init__(self, context: Context, keeper: Keeper, mistrusted: MistrustedFiles) -> None:
        self._context = context
        self._keeper = keeper
        self._walks: WeakValueDictionary[tuple[int, str], Walk] = WeakValueDictionary()
        self._mistrusted = mistrusted

    async def find_kept(self, proxy: Repository, request: FileRequest) -> File | None:
        """
        The file as it is kept, or None; also if it came from an upstream that the proxy does not have any more, or if
        its bytes are lost.
        """
        found = await self.find_former(proxy, request)
        return None if found is None or not found.locator or is_former(proxy, found) else found

    async def find_former(self, proxy: Repository, request: FileRequest) -> File | None:
        """The file as it is kept, of whatever upstream: the present ones may not have it."""
        found: File | None = await self._context.catalog.look(files.find_file, proxy.id, request.path)
        return found

    async def has_version(self, proxy: Repository, request: FileRequest) -> bool:
        """Whether a proxy has served the version that a file belongs to."""
        return await self._context.chosen_routes.find(proxy, request) is not None

    async def look(self, proxy: Repository, request: FileRequest, trace: Trace) -> RemoteFile:
        """
        A file that is not kept, as an upstream describes it; its size may be unknown.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known
        """
        self._check_negative_cache(proxy, request, trace)
        walk = Walk(proxy, request, self._context)
        try:
            async with walk.open({}, method="HEAD") as response:
                remote = walk.remote
                size = response.length
        except NotFound:
            self._context.negative_cache.note(proxy, request.key, walk.trace)
            raise
        finally:
            trace.join(walk.trace)
        remote = _with_size(remote, size)
        trace.add(StepKind.FILE_LISTED, repository=proxy.path, route=remote.route, path=request.path)
        return remote

    async def fetch(
        self, proxy: Repository, request: FileRequest, trace: Trace
    ) -> tuple[RemoteFile | None, ArrivingBody | bytes | File]:
        """
        A file as soon as there is anything to send, see L{Transfer.content}, and how its upstream describes it.

        The latter is None if it was kept meanwhile. A part of the file ends when the whole is verified.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        kept = await self._find_now(proxy, request, trace)
        if kept is not None:
            return None, kept
        self._context.counters.add(proxy.id, CacheCounts(misses=1))
        return await self._join(proxy, request, trace, partial(Transfer.content, holds_parts=True))

    async def keep(self, proxy: Repository, request: FileRequest) -> File:
        """
        A file when it is kept.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``fetch``
        """
        trace = Trace()
        kept = await self._find_now(proxy, request, trace)
        if kept is not None:
            return kept
        self._context.counters.add(proxy.id, CacheCounts(misses=1))
        _, found = await self._join(proxy, request, trace, lambda transfer: transfer.finish())
        return found

    async def fetch_digests(self, proxy: Repository, request: FileRequest, trace: Trace) -> RemoteFile | File:
        """
        A file with all its digests, as soon as it is verified: clients ask for checksums while it is being recorded.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``fetch``
        """
        kept = await self._find_now(proxy, request, trace)
        if kept is not None:
            return kept
        remote, _ = await self._join(proxy, request, trace, Transfer.verify)
        # Another process may have recorded it without a word of where it comes from.
        return await self.find_kept(proxy, request) or remote

    async def _find_now(self, proxy: Repository, request: FileRequest, trace: Trace) -> File | None:
        """The file, if a transfer that ended after the caller had looked for it has kept it."""
        self._check_negative_cache(proxy, request, trace)
        return await self.find_kept(proxy, request)

    async def _join(
        self, proxy: Repository, request: FileRequest, trace: Trace, follow: Callable[[Transfer[File]], Awaitable[T]]
    ) -> tuple[RemoteFile, T]:
        """What a reader of the transfer gets, which is begun if it is not under way."""
        place = (proxy.id, request.path)
        transfer = self._context.transfers.get(*place, lambda: self._download(proxy, request))
        walk = self._walks[place]
        try:
            found = await follow(transfer)
        except NotFound:
            self._context.negative_cache.note(proxy, request.key, walk.trace)
            raise
        finally:
            trace.join(walk.trace)
        return with_digests(walk.remote, transfer.digests), found

    def forget(self, repository: Repository) -> None:
        """Forget what only this process remembers of a proxy: what its routes do not have, and which has a version."""
        self._context.negative_cache.forget(repository)
        self._context.chosen_routes.forget(repository)

    def _check_negative_cache(self, proxy: Repository, request: FileRequest, trace: Trace) -> None:
        try:
            self._context.negative_cache.check(proxy, request.key, trace)
        except NotFound:
            self._context.counters.add(proxy.id, CacheCounts(absent=1))
            raise NotFound("file", request.path) from None

    def _download(self, proxy: Repository, request: FileRequest) -> Download[File]:
        place = (proxy.id, request.path)
        walk = self._walks[place] = Walk(proxy, request, self._context)

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> File:
            kept = await self._keeper.keep(walk.remote, staged, blob)
            self._context.chosen_routes.settle(proxy, request)
            self._mistrusted.discard(place)
            return kept

        def again(error: UpstreamFailed) -> bool:
            if isinstance(error, UpstreamMismatch):
                self._mistrusted.note(place)
            return walk.again(error)

        return evolve(
            walk.download(record, lambda: self.find_kept(proxy, request)),
            again=again,
            digests_of=lambda file: {**file.digests, "sha256": file.sha256},
            shared=place not in self._mistrusted,
        )


def _with_size(remote: RemoteFile, size: int | None) -> RemoteFile:
    source = msgspec.structs.replace(remote.source, size=size)
    return RemoteFile(remote.repository, remote.key, remote.route, source, remote.entry)
