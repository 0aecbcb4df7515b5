"""
Files that may change under their paths: kept for a while, and asked for again with conditions.

They are kept as an upstream's documents are, each as a row that names a blob, which here has the bytes as they came.
What becomes of them is in L{pkgrepo.proxy.kept_states}.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from attrs import evolve, frozen

from pkgrepo.model import BlobInfo, File, Repository
from pkgrepo.proxy.addressed.walk import Context
from pkgrepo.proxy.kept_states import KeptState, confirm, ttl_ms
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.revalidation import Current, Kept, Outcome, Revalidation, as_kept, recall
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
        self._walks: WeakValueDictionary[tuple[int, str], Walk] = WeakValueDictionary()

    async def find_kept(self, proxy: Repository, request: FileRequest) -> Kept[File] | None:
        """The file as it is kept of one of the routes, fresh or not; None if it is not."""
        kept = await self._revalidation.look(_MutableFile(self, proxy, request))
        return None if kept.state in (KeptState.NONE, KeptState.FORMER) else kept

    async def fetch(
        self, proxy: Repository, request: FileRequest, trace: Trace, *, recorded: bool
    ) -> Current[File] | Current[Arriving]:
        """
        The file as it is now: what arrives of it and how its upstream describes it, or what is kept.

        With ``recorded`` it is the latter. A part of what arrives ends when the whole is verified.

        :raises NotFound: no upstream has it any more; :raises UpstreamFailed: that is not known, and nothing is kept
        :raises StorageFull, StorageFailed: it cannot be stored, and nothing is kept
        """
        cached = _MutableFile(self, proxy, request, recorded)
        kept = await self._revalidation.look(cached)
        if kept.content is not None and kept.state.suffices:
            recall(trace, proxy, kept)
            return as_kept(kept, kept.content)
        self._revalidation.check_absent(cached, kept, trace)
        return await self._revalidation.ask(cached, kept, trace)

    async def ask(self, cached: _MutableFile, kept: Kept[File], trace: Trace) -> Current[File] | Current[Arriving]:
        """What the routes have; readers of a file at a time share a transfer."""
        proxy, request = cached.repository, cached.request
        before = kept.row if kept.content is not None and kept.state is not KeptState.FORMER else None
        place = (proxy.id, request.key)
        transfer = self.context.transfers.get(*place, lambda: self._download(proxy, request, before))
        walk = self._walks[place]
        try:
            content = await (transfer.finish() if cached.recorded else transfer.content(holds_parts=True))
        except Unchanged:
            assert before is not None, "without a kept file there are no conditions"
            assert kept.content is not None, "its row names it"
            row = confirm(proxy, before, self.context.clock.now_ms(), request.most_ttl_s)
            await cached.renew(kept.content, row)
            return Current(kept.content, Outcome.CONFIRMED, row.fresh_until_ms, row)
        finally:
            trace.join(walk.trace)
        if isinstance(content, UpstreamDocument):
            return Current(_to_file(proxy, request, content), Outcome.MISS, content.fresh_until_ms, content)
        return Current((with_digests(walk.remote, transfer.digests), content), Outcome.MISS)

    def _download(
        self, proxy: Repository, request: FileRequest, before: UpstreamDocument | None
    ) -> Download[UpstreamDocument]:
        walk = self._walks[proxy.id, request.key] = Walk(
            proxy,
            request,
            self.context,
            conditions={} if before is None else {before.route: _conditions(before)},
        )

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> UpstreamDocument:
            return await self._record(proxy, request, walk, staged, blob)

        async def find() -> UpstreamDocument | None:
            found = await self.find_kept(proxy, request)
            return found.row if found is not None and found.state in (KeptState.FRESH, KeptState.GONE) else None

        return Download(
            route=walk.route_name(),
            asked=walk.route_name,
            open=walk.open,
            stage=lambda: self.context.publisher.stage(proxy),
            record=record,
            algorithms=request.algorithms,
            announced=walk.announced,
            again=walk.again,
            find=find,
            describe=walk.describe,
            adopt=walk.adopt,
        )

    async def _record(
        self, proxy: Repository, request: FileRequest, walk: Walk, staged: Staged, blob: BlobInfo
    ) -> UpstreamDocument:
        now_ms = self.context.clock.now_ms()
        before = await self.context.catalog.look(upstream_documents.fetched_at, proxy.id, request.key)
        etag, last_modified = walk.validators
        remote = walk.remote
        document = UpstreamDocument(
            key=request.key,
            package_key=request.package_key,
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
            fetched_ms=now_ms if before is None else max(now_ms, before + 1),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(proxy, request.most_ttl_s),
        )
        stored = await self.context.publisher.change_with_blobs(
            upstream_documents.put_document, proxy, staged, [blob], document, blob
        )
        # It is not looked up: a purge may have removed the row, while the bytes stay until they are collected.
        return evolve(document, storage_id=proxy.storage_id, sha256=blob.sha256, size=blob.size, locator=stored.locator)


@frozen(eq=False)
class _MutableFile:
    """A file that may change; see L{Cached}. With ``recorded`` it is wanted as it is kept."""

    files: MutableFiles
    repository: Repository
    request: FileRequest
    recorded: bool = False
    what = "file"
    gone_s = 0

    @property
    def key(self) -> str:
        return self.request.key

    @property
    def package(self) -> str:
        return self.request.package_key

    @property
    def most_ttl_s(self) -> int | None:
        return self.request.most_ttl_s

    async def find(self) -> tuple[File | None, UpstreamDocument | None]:
        look = self.files.context.catalog.look
        row: UpstreamDocument | None = await look(upstream_documents.find_document, self.repository.id, self.key)
        if row is None or not row.locator:
            return None, row
        return _to_file(self.repository, self.request, row), row

    async def ask(self, kept: Kept[File], trace: Trace) -> Current[File] | Current[Arriving]:
        return await self.files.ask(self, kept, trace)

    async def renew(self, _content: File, row: UpstreamDocument) -> None:
        await self.files.context.publisher.change(upstream_documents.renew_document, self.repository, row)

    async def drop(self) -> None:
        change = self.files.context.publisher.change
        await change(upstream_documents.remove_documents, self.repository, [self.key])

    def step(self, _content: File) -> dict[str, str]:
        return {"path": self.request.path}


def _conditions(document: UpstreamDocument) -> Mapping[str, str]:
    found = {"If-None-Match": document.etag, "If-Modified-Since": document.last_modified}
    return {name: value for name, value in found.items() if value}


def _to_file(proxy: Repository, request: FileRequest, document: UpstreamDocument) -> File:
    """The file in the form that files of packages have; its id is 0, since it has no row among these."""
    return File(
        id=0,
        repository_id=proxy.id,
        storage_id=document.storage_id,
        path=request.path,
        package_id=None,
        version_id=None,
        sha256=document.sha256,
        size=document.size,
        locator=document.locator,
        media_type=request.media_type,
        digests=document.meta.get("digests", {}),
        attrs={},
        created_at=datetime.fromtimestamp(document.fetched_ms / 1000, UTC),
    )
