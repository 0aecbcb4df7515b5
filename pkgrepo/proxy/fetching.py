"""
Fetches files from upstreams, once for all who want them, and keeps them.

A file that is in another one is read out of the parts of that in which it is, if the upstream sends parts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from attrs import define, evolve, frozen
from zope.interface import implementer

from pkgrepo.archives.source import PartialSource, PartMissing, Source
from pkgrepo.concurrency.pools import Pool, Pools
from pkgrepo.concurrency.services import spawn
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid, NotFound, PkgrepoError, UpstreamFailed, UpstreamMismatch
from pkgrepo.interfaces import ICatalog, IUpstreamResponse
from pkgrepo.model import BlobInfo, File, ReadLimits
from pkgrepo.proxy.configuration import find_route
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.remote_files import Keeper, MistrustedFiles, RemoteFile
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Headers, part_of
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.transfers.transfer import Transfer
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.usage_counts import CacheCounts

SMALL_CONTAINER: Final = 128 * 1024  # bytes; a file up to this is fetched whole, and verified, rather than in parts
FAR: Final = 1024 * 1024  # bytes before a part; fewer are fetched with it, and kept
READ_IN_PARTS: Final = (".whl", ".conda")  # zip archives: clients read the directory at the end, and single members
LARGEST_PART: Final = 8 * 1024 * 1024  # bytes; a client that wants more wants the file
FIRST: Final = 80 * 1024  # bytes of the end of a file; zip readers look for the directory in its last 64 KiB
AHEAD: Final = 32 * 1024  # bytes at least of each further part
MOST_PARTS: Final = 8
MOST_BYTES: Final = 4 * 1024 * 1024  # in memory; the directory of a wheel of 13,000 files has 1.5 MB

Open = Callable[[Mapping[str, str]], AbstractAsyncContextManager[IUpstreamResponse]]


class Fetching:
    """
    Fetches the files that documents of upstreams list. ``largest`` is the size of the largest file in bytes.

    Some ``formats`` have files that are also in others (L{Containers}). One that the upstream does not have is
    read out of the other, of which only the parts are asked for that are needed; if they cannot be had, the whole.

    ``on_mismatch`` is called with a file of which the upstream has sent another one than its document announced,
    ``on_lack`` with one that is listed, and neither the upstream nor the file has in which it should be.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        content: ContentWriter,
        upstreams: Upstreams,
        transfers: Transfers,
        keeper: Keeper,
        counters: CacheCounters,
        mistrusted: MistrustedFiles,
        formats: Mapping[str, Proxied],
        pools: Pools,
        on_mismatch: Callable[[RemoteFile], Coroutine[Any, Any, None]],
        on_lack: Callable[[RemoteFile], Coroutine[Any, Any, None]],
        largest: int,
    ) -> None:
        self._catalog = catalog
        self._content = content
        self._upstreams = upstreams
        self._transfers = transfers
        self._keeper = keeper
        self._counters = counters
        self._mistrusted = mistrusted
        self._formats = formats
        self._pools = pools
        self._on_mismatch = on_mismatch
        self._on_lack = on_lack
        self._limits = ReadLimits(largest)

    async def content(self, remote: RemoteFile, *, takes_whole: bool = True) -> ArrivingBody | bytes | File:
        """
        A file as soon as there is anything to send; see L{Transfer.content}. A part of it ends when it is verified.

        With ``takes_whole`` that may be when the whole file is kept in which it is.

        :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be had from there
        :raises UpstreamMismatch: it has another file there; its document is asked for again when the file is looked for
        :raises StorageFull, StorageFailed: it cannot be stored
        :raises WholeNeeded: it needs the whole file in which it is
        """
        kept = await self.find(remote)
        if kept is not None:  # by a transfer that ended after the caller had looked for the file
            return kept
        self._counters.add(remote.repository.id, CacheCounts(misses=1))
        try:
            return await self._transfer(remote).content(holds_parts=True)
        except UpstreamMismatch:  # perhaps of a transfer by another process
            await self._on_mismatch(remote)
            raise
        except WholeNeeded:
            if not takes_whole:
                raise
            return await self._finish_container(remote)

    async def finish(self, remote: RemoteFile) -> File:
        """A file when it is kept. It raises what ``content`` raises, but no L{WholeNeeded}."""
        kept = await self.find(remote)
        try:
            return kept if kept is not None else await self._transfer(remote).finish()
        except WholeNeeded:
            return await self._finish_container(remote)

    async def _finish_container(self, remote: RemoteFile) -> File:
        """A file when the whole file is kept in which it is."""
        container = self._container_of(remote)
        assert container is not None, "only files in others need these"
        # A client that does not wait so long finds it the next time.
        await shield(self.finish(container))
        found = await self.find(remote)
        if found is None:
            raise await self._lack(remote)
        return found

    async def _lack(self, remote: RemoteFile) -> PkgrepoError:
        """The error that a listed file cannot be had, which it is not listed with any more."""
        await self._on_lack(remote)
        return _not_contained(remote)

    async def size(self, remote: RemoteFile) -> int | None:
        """The size in bytes of a file that is not kept; None if the upstream does not tell it."""
        if remote.source.size is not None:
            return remote.source.size
        container = self._container_of(remote)
        if container is not None and container.source.url == remote.source.url:
            return None
        with suppress(UpstreamFailed):
            async with self._open(remote, {}, method="HEAD") as response:
                return response.length if response.status == 200 else None
        return None

    def passes_on(self, remote: RemoteFile, start: int, end: int) -> bool:
        """
        Whether a part of a file is asked of the upstream alone, and not kept, since the bytes before it are far more.

        Nothing shows that such a part is right, so it is done only for files that are ``READ_IN_PARTS``, and for none
        of which the upstream has sent a wrong one.
        """
        if (remote.repository.id, remote.identity) in self._mistrusted or end - start > LARGEST_PART:
            return False
        transfer = self._transfers.find(remote.repository.id, remote.source.path, identity=remote.identity)
        return start - (0 if transfer is None else transfer.available) >= FAR

    @asynccontextmanager
    async def open_part(
        self, remote: RemoteFile, size: int, start: int, end: int
    ) -> AsyncIterator[IUpstreamResponse | None]:
        """
        The response of the upstream with a part of a file of ``size`` bytes; None if it sends no parts.

        :raises NotFound, UpstreamFailed: see ``content``
        """
        async with self._open(remote, {"Range": f"bytes={start}-{end - 1}"}) as response:
            if response.status in (404, 410):
                raise NotFound("file", remote.source.path)
            yield response if part_of(response) == (start, end, size) else None

    def when_kept(self, remote: RemoteFile, listener: Callable[[File], None]) -> None:
        """Call a function with the row of a file of which ``content`` gave bytes, as soon as there is one."""
        transfer = self._transfers.find(remote.repository.id, remote.source.path, identity=remote.identity)
        if transfer is not None:
            transfer.when_recorded(listener)

    def _transfer(self, remote: RemoteFile) -> Transfer[File]:
        place = remote.repository.id, remote.source.path
        return self._transfers.get(*place, lambda: self._download(remote), identity=remote.identity)

    def _open(
        self, remote: RemoteFile, headers: Mapping[str, str], *, method: str = "GET"
    ) -> AbstractAsyncContextManager[IUpstreamResponse]:
        upstream = self._upstreams.of(remote.repository.id, find_route(remote.repository, remote.route))
        return upstream.open(method, remote.source.url, headers, limits=self._limits, subject=remote.key)

    def _container_of(self, remote: RemoteFile) -> RemoteFile | None:
        """The file in which a file is, too."""
        containers = self._formats[remote.repository.format].containers
        source = None if containers is None else containers.container_of(remote)
        return None if source is None else evolve(remote, source=source)

    @asynccontextmanager
    async def _open_contained(self, remote: RemoteFile, container: RemoteFile) -> AsyncIterator[IUpstreamResponse]:
        """The response of the upstream with a file, or one that is read out of the other if it does not have it."""
        if remote.source.url != container.source.url:
            async with self._open(remote, {}) as response:
                if response.status not in (404, 410):
                    yield response
                    return
        if await self.find(container) is not None:
            raise await self._lack(remote)  # it would have been found when that was kept
        size, path = await self.size(container), remote.source.path
        if size is not None and size <= SMALL_CONTAINER:
            raise WholeNeeded(path)
        containers = self._formats[remote.repository.format].containers
        assert containers is not None, "the container was found by it"
        open_, cpu = partial(self._open, container), self._pools.cpu
        data = await read_out(open_, path, size, lambda parts: containers.read_out(parts, remote), cpu)
        yield ReadOut(container.url, data)

    async def find(self, remote: RemoteFile) -> File | None:
        """The file, if it is kept."""
        found: File | None = await self._catalog.look(files.find_file, remote.repository.id, remote.source.path)
        return found if found is not None and remote.is_kept_as(found) else None

    def _download(self, remote: RemoteFile) -> Download[File]:
        container = self._container_of(remote)

        def open_(headers: Mapping[str, str]) -> AbstractAsyncContextManager[IUpstreamResponse]:
            return self._open(remote, headers) if container is None else self._open_contained(remote, container)

        place = remote.repository.id, remote.identity

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> File:
            kept = await self._keeper.keep(remote, staged, blob)
            self._mistrusted.discard(place)
            for each in remote.entry.files:
                inner = evolve(remote, source=each)
                if each.url == remote.source.url and each != remote.source and await self.find(inner) is None:
                    spawn(self._on_lack(inner), "a file that is not in another one was still listed")
            return kept

        def again(error: UpstreamFailed) -> bool:
            if isinstance(error, UpstreamMismatch):  # clients may have bytes already, and come again
                self._mistrusted.note(place)
                spawn(self._on_mismatch(remote), "a document whose file has changed was not marked as old")
            return False

        return Download(
            route=remote.route,
            open=open_,
            stage=lambda: self._content.stage(remote.repository),
            record=record,
            find=lambda: self.find(remote),
            expected=remote.source.digests,
            size=remote.source.size,
            again=again,
            shared=place not in self._mistrusted,
        )


def _not_contained(remote: RemoteFile) -> PkgrepoError:
    if remote.source.digests:
        return UpstreamFailed(remote.route, "it does not have a file that it announced, nor is that in another one")
    return NotFound("file", remote.source.path)


@define
class WholeNeeded(PkgrepoError):  # noqa: N818 - named for what is the case
    """A file cannot be read out of parts of another: the upstream sends none, or they are too large or damaged."""

    name: str

    def __str__(self) -> str:
        return f"parts of {self.name} are not enough"


@implementer(IUpstreamResponse)
class ReadOut:
    """A file that was read out of another at ``url``, as if the upstream had sent it."""

    status = 200
    framed = True

    def __init__(self, url: str, data: bytes) -> None:
        self.url = url
        self.headers: Mapping[str, str] = {}
        self.length = len(data)
        self._data = data

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the file, in one piece."""
        yield self._data

    async def read(self) -> bytes:
        """The file."""
        return self._data


@frozen
class _Part:
    start: int
    size: int  # of the whole
    etag: str | None
    data: bytes


async def read_out(open_: Open, name: str, size: int | None, read: Callable[[Source], bytes], cpu: Pool) -> bytes:
    """
    The result of ``read``, which is called on a thread with the parts of a file, and with more if some are missing.

    ``open_`` asks for the file with header fields. ``name`` is that of the file for errors, ``size`` its size in bytes
    if that is known: not all servers know ranges that are counted from the end.

    :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be asked
    :raises WholeNeeded: see there
    """
    first = await _ask(open_, name, f"-{FIRST}" if size is None else f"{max(size - FIRST, 0)}-{size - 1}")
    parts = PartialSource(first.size, name)
    parts.add(first.start, first.data)
    left = MOST_BYTES - len(first.data)
    for _ in range(MOST_PARTS):
        try:
            return await cpu(read, parts)
        except PartMissing as missing:
            start, end = missing.start, max(missing.end, min(missing.start + AHEAD, first.size))
        except Invalid:
            break  # perhaps on its way: the whole is verified
        left -= end - start
        if left < 0:
            break
        part = await _ask(open_, name, f"{start}-{end - 1}")
        if (part.start, part.size, part.etag) != (start, first.size, first.etag):
            break
        parts.add(start, part.data)
    raise WholeNeeded(name)


async def _ask(open_: Open, name: str, wanted: str) -> _Part:
    async with open_({"Range": f"bytes={wanted}"}) as response:
        if response.status in (404, 410):
            raise NotFound("file", name)
        found = part_of(response)
        if found is None or found[1] - found[0] > MOST_BYTES:
            raise WholeNeeded(name)
        start, end, size = found
        data: Any = await response.read()
        if len(data) != end - start:
            raise WholeNeeded(name)
        return _Part(start, size, response.headers.get("ETag"), data)
