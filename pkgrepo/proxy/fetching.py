"""Fetches files from upstreams, once for all who want them, and keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from urllib.parse import urlsplit

from attrs import evolve

from pkgrepo.errors import FileExists, existing
from pkgrepo.interfaces import ICatalog, IProxiedFormat, IUpstreamResponse
from pkgrepo.model import SYSTEM, BlobInfo, File, NewFile, Origin, ReadLimits
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.cache_counts import CacheCounts
from pkgrepo.storage.pools import Pools

from .configuration import find_route
from .counters import CacheCounters
from .resolving.package_files import RemoteFile
from .transfers.arriving import ArrivingBody
from .transfers.download import Download, Headers
from .transfers.running import Transfers
from .upstream.instances import Upstreams


class Fetching:
    """Fetches the files that documents of upstreams list. ``largest`` is the size of the largest file in bytes."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        publisher: Publisher,
        pools: Pools,
        clock: Clock,
        upstreams: Upstreams,
        transfers: Transfers,
        formats: Mapping[str, IProxiedFormat],
        counters: CacheCounters,
        largest: int,
    ) -> None:
        self._catalog = catalog
        self._publisher = publisher
        self._pools = pools
        self._clock = clock
        self._upstreams = upstreams
        self._transfers = transfers
        self._formats = formats
        self._counters = counters
        self._limits = ReadLimits(largest)

    async def content(self, remote: RemoteFile, *, part: bool = False) -> ArrivingBody | bytes | File:
        """
        A file as soon as there is anything to send; see L{Transfer.content}.

        A caller who wants only a ``part`` gets the row, when the file is verified: a part cannot be cut off if the file
        turns out to be wrong.

        :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        self._counters.add(remote.repository.id, CacheCounts(misses=1))
        key = remote.repository.id, remote.source.path
        kept: File | None = await self._catalog.look(files.find_file, *key)
        if kept is not None:  # by a transfer that ended after the caller had looked for the file
            return kept
        transfer = self._transfers.get(*key, lambda: self._download(remote))
        return await (transfer.finish() if part else transfer.content())

    def _download(self, remote: RemoteFile) -> Download[File]:
        upstream = self._upstreams.of(remote.repository.id, find_route(remote.repository, remote.route))

        def open_(headers: Mapping[str, str]) -> AbstractAsyncContextManager[IUpstreamResponse]:
            return upstream.open("GET", remote.source.url, headers, limits=self._limits)

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> File:
            return await self._record(remote, staged, blob)

        return Download(
            route=remote.route,
            open=open_,
            stage=lambda: self._publisher.stage(remote.repository),
            record=record,
            expected=remote.source.digests,
            size=remote.source.size,
        )

    async def _record(self, remote: RemoteFile, staged: Staged, blob: BlobInfo) -> File:
        release, indexer = await self._formats[remote.repository.format].make_release(remote, staged, blob, self._pools)
        release = evolve(release, kind="cached", files=tuple(self._with_origin(remote, each) for each in release.files))
        with suppress(FileExists):  # another process was faster: what was kept first stays
            await self._publisher.publish(remote.repository, release, staged, SYSTEM, indexer)
        path = remote.source.path
        return existing(await self._catalog.look(files.find_file, remote.repository.id, path), "file", path)

    def _with_origin(self, remote: RemoteFile, file: NewFile) -> NewFile:
        if file.path != remote.source.path:
            return file
        origin = Origin(
            route=remote.route,
            # A query may hold a signature, which is as good as a password for a while.
            url=urlsplit(remote.source.url)._replace(query="", fragment="").geturl(),
            fetched_ms=self._clock.now_ms(),
            published_ms=remote.entry.published_ms,
        )
        return evolve(file, attrs={**file.attrs, **origin.attrs})
