"""
Files that may change under their paths: kept for a while, and asked for again with conditions.

They are kept as an upstream's documents are, each as a row that names a blob, which here has the bytes as they came.
What becomes of them is in L{pkgrepo.proxy.caching.states}.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from attrs import define, evolve

from pkgrepo.model import BlobInfo, File, Repository
from pkgrepo.proxy.addressed.walk import Context
from pkgrepo.proxy.caching.revalidation import Cached, Current, Kept, Outcome, Revalidation
from pkgrepo.proxy.caching.states import KeptState, confirm, later, ttl_ms
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Headers
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .request import FileRequest
from .walk import Unchanged, Walk, with_digests

Arriving = tuple[RemoteFile, ArrivingBody | bytes]


class MutableFiles:
    """The files of all proxies that may change."""

    def __init__(self, context: Context, revalidation: Revalidation) -> None:
        self.context = context
        self._revalidation = revalidation
        self.walks: WeakValueDictionary[tuple[int, str], Walk] = WeakValueDictionary()

    async def find_kept(self, proxy: Repository, request: FileRequest) -> Kept[File] | None:
        """The file as it is kept of one of the routes, fresh or not; None if it is not."""
        kept = await self._revalidation.look(self._cached(proxy, request))
        return None if kept.content is None or kept.state is KeptState.FORMER else kept

    async def fetch(
        self, proxy: Repository, request: FileRequest, trace: Trace, *, recorded: bool
    ) -> Current[File] | Current[Arriving]:
        """
        The file as it is now: what arrives of it and how its upstream describes it, or what is kept.

        With ``recorded`` it is the latter. A part of what arrives ends when the whole is verified.

        :raises NotFound: no upstream has it any more; :raises UpstreamFailed: that is not known, and nothing is kept
        :raises StorageFull, StorageFailed: it cannot be stored, and nothing is kept
        """
        return await self._revalidation.get(self._cached(proxy, request, recorded=recorded), trace)

    def _cached(self, proxy: Repository, request: FileRequest, *, recorded: bool = False) -> _MutableFile:
        return _MutableFile(
            self,
            request,
            recorded,
            repository=proxy,
            key=request.key,
            name=request.path,
            package=request.package_key,
            most_ttl_s=request.most_ttl_s,
            settled=request.settled,
        )


@define(eq=False)
class _MutableFile(Cached[File]):
    """A file that may change; with ``recorded`` it is wanted as it is kept. Its transfer is shared."""

    _files: MutableFiles
    _request: FileRequest
    _recorded: bool
    shared = False

    async def find(self) -> tuple[File | None, UpstreamDocument | None]:
        look = self._files.context.catalog.look
        row: UpstreamDocument | None = await look(upstream_documents.find_document, self.repository.id, self.key)
        return (self._file(row) if row is not None and row.locator else None), row

    async def ask(self, kept: Kept[File], trace: Trace) -> Current[File] | Current[Arriving]:
        files, place = self._files, (self.repository.id, self.key)
        before = kept.row if kept.content is not None and kept.state is not KeptState.FORMER else None
        transfer = files.context.transfers.get(*place, lambda: self._download(before))
        walk = files.walks[place]
        try:
            content = await (transfer.finish() if self._recorded else transfer.content(holds_parts=True))
        except Unchanged:
            assert before is not None, "without a kept file there are no conditions"
            assert kept.content is not None, "its row names it"
            row = confirm(self.repository, before, files.context.clock.now_ms(), self.most_ttl_s)
            return Current(await self.renew(kept.content, row), Outcome.CONFIRMED, row.fresh_until_ms, row)
        finally:
            trace.join(walk.trace)
        if isinstance(content, UpstreamDocument):
            return Current(self._file(content), Outcome.MISS, content.fresh_until_ms, content)
        return Current((with_digests(walk.remote, transfer.digests), content), Outcome.MISS)

    async def renew(self, content: File, row: UpstreamDocument) -> File:
        await self._files.context.content.change(upstream_documents.renew_document, self.repository, row)
        return content

    async def drop(self, _absence: UpstreamDocument, before_ms: int) -> None:
        change = self._files.context.content.change
        await change(upstream_documents.remove_earlier, self.repository, self.key, before_ms)

    def step(self, _content: File) -> dict[str, str]:
        return {"path": self.name}

    def _download(self, before: UpstreamDocument | None) -> Download[UpstreamDocument]:
        conditions = {} if before is None else {before.route: _conditions(before)}
        walk = Walk(self.repository, self._request, self._files.context, conditions=conditions)
        self._files.walks[self.repository.id, self.key] = walk

        async def find() -> UpstreamDocument | None:
            found = await self._files.find_kept(self.repository, self._request)
            return found.row if found is not None and found.state in (KeptState.FRESH, KeptState.GONE) else None

        return walk.download(partial(self._record, walk), find)

    async def _record(self, walk: Walk, staged: Staged, blob: BlobInfo, _headers: Headers) -> UpstreamDocument:
        context, proxy, remote = self._files.context, self.repository, walk.remote
        now_ms = context.clock.now_ms()
        etag, last_modified = walk.validators
        document = UpstreamDocument(
            key=self.key,
            package_key=self.package,
            route=remote.route,
            url=urlsplit(remote.source.url)._replace(query="", fragment="").geturl(),
            etag=etag,
            last_modified=last_modified,
            source=blob.sha256,
            meta={
                "address": walk.route.url,
                "digests": dict(blob.digests),
                "published_ms": remote.entry.published_ms,
                **({} if remote.source.digests else {"unverified": True}),
            },
            fetched_ms=later(now_ms, await context.catalog.look(upstream_documents.fetched_at, proxy.id, self.key)),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(proxy, self.most_ttl_s),
        )
        stored = await context.content.change_with_blobs(
            upstream_documents.put_document, proxy, staged, [blob], document, blob
        )
        # It is not looked up: a purge may have removed the row, while the bytes stay until they are collected.
        return evolve(document, storage_id=proxy.storage_id, sha256=blob.sha256, size=blob.size, locator=stored.locator)

    def _file(self, row: UpstreamDocument) -> File:
        """The file in the form that files of packages have; its id is 0, since it has no row among these."""
        return File(
            id=0,
            repository_id=self.repository.id,
            storage_id=row.storage_id,
            path=self.name,
            package_id=None,
            version_id=None,
            sha256=row.sha256,
            size=row.size,
            locator=row.locator,
            media_type=self._request.media_type,
            digests=row.meta.get("digests", {}),
            attrs={},
            created_at=datetime.fromtimestamp(row.fetched_ms / 1000, UTC),
        )


def _conditions(document: UpstreamDocument) -> Mapping[str, str]:
    found = {"If-None-Match": document.etag, "If-Modified-Since": document.last_modified}
    return {name: value for name, value in found.items() if value}
