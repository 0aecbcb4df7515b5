"""
Files that may change under their paths: kept for a while, and asked for again with conditions.

They are kept as an upstream's documents are, each as a row that names a blob, which here has the bytes as they came.
What becomes of them is in L{pkgrepo.proxy.kept_states}.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from attrs import evolve, frozen

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import NotFound
from pkgrepo.model import BlobInfo, File, Repository
from pkgrepo.proxy.addressed.walk import Context
from pkgrepo.proxy.kept_states import FAILURES, STALE_RETRY_MS, KeptState, fresh_until_ms, state_of, ttl_ms
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Headers
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage_counts import CacheCounts

from .request import FileRequest
from .walk import Unchanged, Walk, with_digests

MOST_STALE: Final = 10_000  # files whose routes fail, in memory


@frozen(eq=False)
class MutableFile:
    """A file as it is kept, its state, and until when it is served without asking (ms). ``document`` is its row."""

    document: UpstreamDocument
    file: File
    fresh_until_ms: int
    state: KeptState = KeptState.FRESH

    @property
    def stale(self) -> bool:
        """Whether a route failed since."""
        return self.state is KeptState.STALE

    @property
    def published_ms(self) -> int | None:
        """When it was published as its upstream says (ms), or None."""
        published_ms: int | None = self.document.meta.get("published_ms")
        return published_ms


class MutableFiles:
    """The files of all proxies that may change."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._walks: WeakValueDictionary[tuple[int, str], Walk] = WeakValueDictionary()
        self._stale_until_ms: Lru[tuple[int, str], int] = Lru(MOST_STALE)

    async def find_kept(self, proxy: Repository, request: FileRequest) -> MutableFile | None:
        """The file as it is kept of one of the routes, fresh or not; None if it is not."""
        document: UpstreamDocument | None = await self._context.catalog.look(
            upstream_documents.find_document, proxy.id, request.key
        )
        if document is None or not document.locator:
            return None
        most_ttl_s, until_ms = request.most_ttl_s, self._stale_until_ms.get((proxy.id, request.key)) or 0
        now_ms = self._context.clock.now_ms()
        state = state_of(proxy, document, now_ms, most_ttl_s=most_ttl_s, failed_until_ms=until_ms)
        if state is KeptState.FORMER:
            return None
        if state is not KeptState.STALE:
            until_ms = fresh_until_ms(proxy, document, most_ttl_s)
        return MutableFile(document, _to_file(proxy, request, document), until_ms, state)

    async def fetch(
        self, proxy: Repository, request: FileRequest, trace: Trace, *, recorded: bool
    ) -> tuple[RemoteFile, ArrivingBody | bytes] | MutableFile:
        """
        The file as it is now: what arrives of it and how its upstream describes it, or what is kept.

        With ``recorded`` it is the latter. A part of what arrives ends when the whole is verified.

        :raises NotFound: no upstream has it any more; :raises UpstreamFailed: that is not known, and nothing is kept
        :raises StorageFull, StorageFailed: it cannot be stored, and nothing is kept
        """
        kept = await self.find_kept(proxy, request)
        if kept is not None and kept.state.suffices:
            return kept
        if kept is None:
            self._context.negative_cache.check(proxy, request.key)
        place = (proxy.id, request.key)
        transfer = self._context.transfers.get(*place, lambda: self._download(proxy, request, kept))
        walk = self._walks[place]
        try:
            content = await (transfer.finish() if recorded else transfer.content(holds_parts=True))
        except Unchanged:
            assert kept is not None, "without a kept file there are no conditions"
            self._context.counters.add(proxy.id, CacheCounts(confirmed=1))
            return await self._confirm(proxy, request, kept)
        except NotFound:
            self._context.negative_cache.note(proxy, request.key)
            self._context.counters.add(proxy.id, CacheCounts(absent=1))
            if kept is not None:
                await self._context.publisher.change(upstream_documents.remove_documents, proxy, [request.key])
            raise
        except FAILURES as error:
            if kept is None or not kept.state.serves_after(error):
                raise
            self._context.counters.add(proxy.id, CacheCounts(stale=1))
            trace.add(StepKind.STALE, repository=proxy.path, route=kept.document.route, why=str(error))
            return self._serve_stale(proxy, request, kept)
        self._context.counters.add(proxy.id, CacheCounts(misses=1))
        if isinstance(content, UpstreamDocument):
            return MutableFile(content, _to_file(proxy, request, content), content.fresh_until_ms)
        return with_digests(walk.remote, transfer.digests), content

    def _serve_stale(self, proxy: Repository, request: FileRequest, kept: MutableFile) -> MutableFile:
        place, until_ms = (proxy.id, request.key), self._context.clock.now_ms() + STALE_RETRY_MS
        self._stale_until_ms.put(place, until_ms)
        return evolve(kept, fresh_until_ms=until_ms, state=KeptState.STALE)

    async def _confirm(self, proxy: Repository, request: FileRequest, kept: MutableFile) -> MutableFile:
        now_ms = self._context.clock.now_ms()
        document = evolve(kept.document, checked_ms=now_ms, fresh_until_ms=now_ms + ttl_ms(proxy, request.most_ttl_s))
        await self._context.publisher.change(upstream_documents.renew_document, proxy, document)
        return evolve(kept, document=document, fresh_until_ms=document.fresh_until_ms, state=KeptState.FRESH)

    def _download(
        self, proxy: Repository, request: FileRequest, kept: MutableFile | None
    ) -> Download[UpstreamDocument]:
        walk = self._walks[proxy.id, request.key] = Walk(
            proxy,
            request,
            self._context,
            conditions={} if kept is None else {kept.document.route: _conditions(kept.document)},
        )

        async def record(staged: Staged, blob: BlobInfo, _headers: Headers) -> UpstreamDocument:
            return await self._record(proxy, request, walk, staged, blob)

        async def find() -> UpstreamDocument | None:
            found = await self.find_kept(proxy, request)
            return found.document if found is not None and found.state.suffices else None

        return Download(
            route=walk.route_name(),
            asked=walk.route_name,
            open=walk.open,
            stage=lambda: self._context.publisher.stage(proxy),
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
        now_ms = self._context.clock.now_ms()
        before = await self._context.catalog.look(upstream_documents.fetched_at, proxy.id, request.key)
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
        stored = await self._context.publisher.change_with_blobs(
            upstream_documents.put_document, proxy, staged, [blob], document, blob
        )
        self._stale_until_ms.pop((proxy.id, request.key))
        # It is not looked up: a purge may have removed the row, while the bytes stay until they are collected.
        return evolve(document, storage_id=proxy.storage_id, sha256=blob.sha256, size=blob.size, locator=stored.locator)


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
