"""Fetches files from upstreams, once for all who want them, and keeps them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import UpstreamFailed, UpstreamMismatch
from pkgrepo.interfaces import ICatalog, IUpstreamResponse
from pkgrepo.model import BlobInfo, File, ReadLimits
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.usage.cache_counts import CacheCounts

from .configuration import find_route
from .counters import CacheCounters
from .keeping import Keeper
from .mistrusted import MistrustedFiles
from .remote_files import RemoteFile
from .transfers.arriving import ArrivingBody
from .transfers.download import Download, Headers
from .transfers.running import Transfers
from .upstream.instances import Upstreams

log = Logger()


class Fetching:
    """
    Fetches the files that documents of upstreams list. ``largest`` is the size of the largest file in bytes.

    ``on_mismatch`` is called with a file of which the upstream has sent another one than its document announced.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        publisher: Publisher,
        upstreams: Upstreams,
        transfers: Transfers,
        keeper: Keeper,
        counters: CacheCounters,
        mistrusted: MistrustedFiles,
        on_mismatch: Callable[[RemoteFile], Coroutine[Any, Any, None]],
        largest: int,
    ) -> None:
        self._catalog = catalog
        self._publisher = publisher
        self._upstreams = upstreams
        self._transfers = transfers
        self._keeper = keeper
        self._counters = counters
        self._mistrusted = mistrusted
        self._on_mismatch = on_mismatch
        self._limits = ReadLimits(largest)

    async def content(self, remote: RemoteFile) -> ArrivingBody | bytes | File:
        """
        A file as soon as there is anything to send; see L{Transfer.content}. A part of it ends when it is verified.

        :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be had from there
        :raises UpstreamMismatch: it has another file there; its document is asked for again when the file is looked for
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        kept = await self._find(remote)
        if kept is not None:  # by a transfer that ended after the caller had looked for the file
            return kept
        self._counters.add(remote.repository.id, CacheCounts(misses=1))
        transfer = self._transfers.get(
            remote.repository.id, remote.source.path, lambda: self._download(remote), identity=remote.identity
        )
        try:
            return await transfer.content(holds_parts=True)
        except UpstreamMismatch:  # perhaps of a transfer by another process
            await self._on_mismatch(remote)
            raise

    def when_kept(self, remote: RemoteFile, listener: Callable[[File], None]) -> None:
        """Call a function with the row of a file of which ``content`` gave bytes, as soon as there is one."""
        transfer = self._transfers.find(remote.repository.id, remote.source.path, identity=remote.identity)
        if transfer is not None:
            transfer.when_recorded(listener)

    async def _find(self, remote: RemoteFile) -> File | None:
        found: File | None = await self._catalog.look(files.find_file, remote.repository.id, remote.source.path)
        return found if found is not None and remote.is_kept_as(found) else None

    def _download(self, remote: RemoteFile) -> Download[File]:
        upstream = self._upstreams.of(remote.repository.id, find_route(remote.repository, remote.route))

        def open_(headers: Mapping[str, str]) -> AbstractAsyncContextManager[IUpstreamResponse]:
            return upstream.open("GET", remote.source.url, headers, limits=self._limits, subject=remote.key)

        place = remote.repository.id, remote.identity

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> File:
            kept = await self._keeper.keep(remote, staged, blob)
            self._mistrusted.discard(place)
            return kept

        def again(error: UpstreamFailed) -> bool:
            if isinstance(error, UpstreamMismatch):  # clients may have bytes already, and come again
                self._mistrusted.note(place)
                Deferred.fromCoroutine(self._on_mismatch(remote)).addErrback(_report)
            return False

        return Download(
            route=remote.route,
            open=open_,
            stage=lambda: self._publisher.stage(remote.repository),
            record=record,
            find=lambda: self._find(remote),
            expected=remote.source.digests,
            size=remote.source.size,
            again=again,
            shared=place not in self._mistrusted,
        )


def _report(failure: Any) -> None:
    log.failure("a document whose file has changed was not marked as old", failure)
