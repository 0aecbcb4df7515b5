"""
Blobs of upstreams: sent to clients while they arrive, verified, and kept as those of a hosted image.

A blob that another image of the repository has from the same route is not fetched again: a HEAD tells whether the image
that is asked for has it, too. Requests for one blob share a transfer, also those for different images. What came from
another route is not shared, since an upstream could say that it has whatever it wants to become readable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from attrs import Factory, define

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.container.names import Digest
from pkgrepo.formats.container.proxied.holders import Places
from pkgrepo.interfaces import ICatalog, IUpstreamResponse, Reader
from pkgrepo.model import BlobInfo, ReadLimits, Repository
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.caching.states import NegativeCache
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Headers
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.transfers.transfer import Transfer
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.repositories.images.blobs import link_blob, mount_blob
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob, find_linked, images_with
from pkgrepo.storage.catalog.usage_counts import CacheCounts

from .registry_client import RegistryClient

T = TypeVar("T")


@define(eq=False)
class _Receiving:
    """The images that get the blob of a transfer when it is ``recorded``; that of the ``leader`` is received."""

    leader: str
    images: set[str]
    recorded: bool = False
    trace: Trace = Factory(Trace)


class UpstreamBlobs:
    """Keeps the blobs of all proxy repositories; those of more than ``largest`` bytes are refused."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        content: ContentWriter,
        transfers: Transfers,
        client: RegistryClient,
        places: Places,
        negative_cache: NegativeCache,
        counters: CacheCounters,
        largest: int,
    ) -> None:
        self._catalog = catalog
        self._content = content
        self._transfers = transfers
        self._client = client
        self._places = places
        self._negative_cache = negative_cache
        self._counters = counters
        self._limits = ReadLimits(largest)
        # each is alive for as long as its transfer
        self._receiving: WeakValueDictionary[tuple[int, str], _Receiving] = WeakValueDictionary()

    async def find(self, repository: Repository, image: str, digest: Digest) -> LinkedBlob | None:
        """The blob as it is kept, or None."""
        found: LinkedBlob | None = await self._catalog.look(
            find_linked, repository.storage_id, repository.id, image, str(digest)
        )
        return found if found is not None and found.locator else None

    async def size(self, repository: Repository, image: str, digest: Digest) -> int:
        """
        The size in bytes of a blob that is not kept, as an upstream tells it.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known
        """

        async def ask(place: Place) -> int:
            async with self._client.open(place, "HEAD", f"blobs/{digest}") as response:
                if response.length is None:
                    raise UpstreamFailed(place.route.name, "it does not tell the size of a blob")
                return int(response.length)

        key = f"blob/{image}@{digest}"
        self._negative_cache.check(repository, key, what="image")
        trace = Trace()
        try:
            return await self._places.first(repository, image, ask, trace, by_digest=True)
        except NotFound:
            self._negative_cache.note(repository, key, trace)
            raise

    async def content(self, repository: Repository, image: str, digest: Digest) -> ArrivingBody | bytes | LinkedBlob:
        """
        A blob that is not kept, as soon as there is anything to send; see L{Transfer.content}.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: it cannot be had from there
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        return await self._receive(repository, image, digest, lambda transfer: transfer.content())

    async def keep(self, repository: Repository, image: str, digest: Digest) -> None:
        """
        Fetch a blob unless it is kept.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see ``content``
        """
        if await self.find(repository, image, digest) is None:
            await self._receive(repository, image, digest, lambda transfer: transfer.finish())

    async def _receive(
        self, repository: Repository, image: str, digest: Digest, read: Callable[[Transfer[LinkedBlob]], Awaitable[T]]
    ) -> T | LinkedBlob:
        key = f"blob/{image}@{digest}"
        self._negative_cache.check(repository, key, what="image")
        leader = await self._share(repository, image, digest)
        route = await self._places.find_route(repository, image) or proxy_config_of(repository).routes[0].name
        kept = await self.find(repository, image, digest)
        if kept is not None:
            return kept
        transfer = self._transfers.get(
            repository.id, f"{leader}@{digest}", lambda: self._download(repository, image, digest, route)
        )
        self._counters.add(repository.id, CacheCounts(misses=1))
        try:
            return await read(transfer)
        except NotFound:
            receiving = self._receiving.get((repository.id, str(digest)))
            self._negative_cache.note(repository, key, Trace() if receiving is None else receiving.trace)
            raise

    async def _share(self, repository: Repository, image: str, digest: Digest) -> str:
        """
        Take a blob from another image that has it, or let the transfer for another image record it for this one, too.

        Returns the image under whose name the blob is transferred, if it must be.

        :raises NotFound, UpstreamFailed: this image does not have it, see ``size``
        """
        receiving = self._receiving.get((repository.id, str(digest)))
        if receiving is not None and image in receiving.images:
            return receiving.leader
        sources = await self._catalog.look(_find_sources, repository, str(digest))
        if receiving is None and not sources:
            return image
        await self.size(repository, image, digest)
        route = await self._places.find_route(repository, image)
        if receiving is not None:
            same = await self._places.find_route(repository, receiving.leader) == route
            if same and not receiving.recorded:
                receiving.images.add(image)
                return receiving.leader
            sources = await self._catalog.look(_find_sources, repository, str(digest))
        for source in sources:
            if await self._places.find_route(repository, source) == route:
                await self._content.change(
                    mount_blob,
                    repository,
                    image,
                    repository,
                    source,
                    str(digest),
                    None,
                    admit_server(Road.PROXY, repository),
                )
                break
        return image

    def _download(self, repository: Repository, image: str, digest: Digest, route: str) -> Download[LinkedBlob]:
        receiving = self._receiving[repository.id, str(digest)] = _Receiving(image, {image})

        @asynccontextmanager
        async def open_(headers: Mapping[str, str]) -> AsyncIterator[IUpstreamResponse]:
            async with AsyncExitStack() as stack:

                async def ask(place: Place) -> IUpstreamResponse:
                    response = self._client.open(place, "GET", f"blobs/{digest}", headers, limits=self._limits)
                    return await stack.enter_async_context(response)

                receiving.trace = Trace()
                yield await self._places.first(repository, image, ask, receiving.trace, by_digest=True)

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> LinkedBlob:
            name, admitted = str(digest), admit_server(Road.PROXY, repository)
            stored = await self._content.change_with_blobs(
                link_blob, repository, staged, [blob], image, blob, name, None, None, admitted
            )
            receiving.recorded = True  # from now on the others find it in the catalog
            for other in sorted(receiving.images - {image}):
                await self._content.change(mount_blob, repository, other, repository, image, name, None, admitted)
            # It is not looked up: a purge may have removed the row, while the bytes stay until they are collected.
            return LinkedBlob(0, blob.sha256, blob.size, stored.locator, 0)

        return Download(
            route=route,
            open=open_,
            stage=lambda: self._content.stage(repository),
            record=record,
            find=lambda: self.find(repository, image, digest),
            expected={digest.algorithm: digest.hex},
        )


def _find_sources(r: Reader, repository: Repository, digest: str) -> list[str]:
    """The images of the repository that have a blob."""
    images = [image for repository_id, image in images_with(r, digest) if repository_id == repository.id]
    found = {image: find_linked(r, repository.storage_id, repository.id, image, digest) for image in images}
    return [image for image, blob in found.items() if blob is not None and blob.locator]
