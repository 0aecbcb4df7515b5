"""
Manifests of upstreams: fetched once, verified, and kept as those of a hosted image.

What is kept of a digest is always served: it cannot change. What becomes of a tag is in L{pkgrepo.proxy.kept_states}.
An upstream is asked by HEAD for the present digest of a tag, and only for one that is not kept by GET: registries limit
the number of these. A tag that it does not have any more is served for ``stale_if_gone``, with a warning, as if it were
stale; then it is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from attrs import define, evolve, field, frozen
from twisted.logger import Logger

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import (
    Invalid,
    NotFound,
    PkgrepoError,
    UpstreamFailed,
    UpstreamMismatch,
)
from pkgrepo.formats.container.documents import (
    DOCKER_IMAGE,
    DOCKER_LIST,
    OCI_ARTIFACT,
    OCI_IMAGE,
    OCI_INDEX,
    ManifestDocument,
    parse_in_thread,
)
from pkgrepo.formats.container.names import Digest, DigestInvalid, find_digest, is_digest_like, is_tag
from pkgrepo.formats.container.proxied.holders import Confirmation, Outcome, Place, Places, recall, tag_key, times_of
from pkgrepo.formats.container.proxied.registry_client import RegistryClient
from pkgrepo.formats.container.target import Target
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.kept_states import FAILURES, STALE_RETRY_MS, KeptState, fresh_until_ms, state_of
from pkgrepo.proxy.remembered import NegativeCache
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.images.cached import drop_tag, keep_manifest, keep_tag
from pkgrepo.repositories.images.push import Push
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest, find_tagged, has_manifests
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage_counts import CacheCounts
from pkgrepo.storage.pools import Pools

T = TypeVar("T")


@frozen
class _Ended(Generic[T]):
    """The steps of a question, and its response or the error instead."""

    steps: Sequence[Mapping[str, Any]]
    response: T | None = None
    error: PkgrepoError | None = None


class TracedRequests(Generic[T]):
    """Requests to upstreams that are in flight, each asked once for all who wait, and whose steps all of them get."""

    def __init__(self) -> None:
        self._in_flight: SingleFlight[tuple[int, str], _Ended[T]] = SingleFlight()

    async def run(self, repository: Repository, key: str, work: Callable[[Trace], Awaitable[T]], trace: Trace) -> T:
        """
        What ``work`` answers or raises; the steps that it adds to its trace are added to ``trace``, too.

        :raises UpstreamLoop: this request has passed the repository before
        """
        refuse_proxy_loop(repository.id, repository.path)

        async def traced() -> _Ended[T]:
            own = Trace()
            try:
                response = await work(own)
            except PkgrepoError as error:
                return _Ended(own.store(), error=error)
            return _Ended(own.store(), response)

        ended = await self._in_flight.run((repository.id, key), traced)
        trace.recall(repository.path, ended.steps)
        if ended.error is not None:
            raise ended.error.with_traceback(None)
        return ended.response  # type: ignore[return-value]  # None only if that is what the work returns


ACCEPT: Final = {"Accept": ", ".join((OCI_INDEX, OCI_IMAGE, DOCKER_LIST, DOCKER_IMAGE, OCI_ARTIFACT))}
STALE_IF_GONE_S: Final = 7 * 86_400  # time to notice, and to bring back, what upstream has removed
MOST_STALE: Final = 10_000  # tags whose upstream fails, in memory

log = Logger()


@frozen
class _Fetched:
    """A manifest as a registry sent it, and the digest by which it is named; None: the sha256 of its bytes."""

    place: Place
    data: bytes
    document: ManifestDocument
    digest: Digest | None
    url: str


@define(eq=False, kw_only=True)
class UpstreamManifests:
    """Keeps the manifests of all proxy repositories."""

    _catalog: ICatalog
    _publisher: Publisher
    _pools: Pools
    _clock: Clock
    _client: RegistryClient
    _places: Places
    _negative_cache: NegativeCache
    _counters: CacheCounters
    _in_flight: TracedRequests[Confirmation] = field(factory=TracedRequests, init=False)
    _stale_until_ms: Lru[tuple[int, str], int] = field(factory=lambda: Lru(MOST_STALE), init=False)

    async def ensure(
        self, target: Target, reference: str, trace: Trace | None = None, *, revalidate: bool = False
    ) -> Confirmation:
        """
        Fetch a manifest, unless what is kept can be served. With ``revalidate`` a tag is confirmed again.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known, and nothing is kept
        """
        try:
            found = await self._ensure(target, reference, trace or Trace(), revalidate=revalidate)
        except NotFound:
            self._counters.add(target.repository.id, CacheCounts(absent=1))
            raise
        self._counters.add(target.repository.id, found.outcome.value)
        return found

    async def _ensure(self, target: Target, reference: str, trace: Trace, *, revalidate: bool) -> Confirmation:
        repository, image = target.repository, target.image
        if not is_digest_like(reference):
            if not is_tag(reference):
                raise NotFound("tag", reference)
            return await self._ensure_tag(target, reference, trace, revalidate=revalidate)
        digest = find_digest(reference)
        if digest is None:
            raise NotFound("manifest", reference)
        if await self._is_kept(repository, image, digest):
            trace.add(StepKind.FILE_KEPT, repository=repository.path, what=reference, digest=str(digest))
            return Confirmation(Outcome.HIT)
        key = f"manifest/{image}@{digest}"
        self._negative_cache.check(repository, key, trace, what="image")
        return await self._in_flight.run(repository, key, partial(self._fetch_digest, target, digest, key), trace)

    async def _ensure_tag(self, target: Target, tag: str, trace: Trace, *, revalidate: bool) -> Confirmation:
        repository, image = target.repository, target.image
        key = tag_key(image, tag)
        kept, row = await self._catalog.look(_read_tag, repository, image, tag)
        if kept is None or not kept.locator:
            self._negative_cache.check(repository, key, trace, what="image")
            kept = None
        gone_until_ms = row.fresh_until_ms if row is not None and "gone_ms" in row.meta else 0
        until_ms = max(gone_until_ms, self._stale_until_ms.get((repository.id, key)) or 0)
        state = state_of(repository, row, self._clock.now_ms(), failed_until_ms=until_ms, revalidate=revalidate)
        if kept is not None and state is KeptState.NONE:
            state = KeptState.OLD  # it is not known when it came
        if kept is None or not state.suffices:
            work = partial(self._refresh_tag, target, tag, kept, row, state)
            return await self._in_flight.run(repository, key, work, trace)
        if row is not None and (state is KeptState.FRESH or until_ms == gone_until_ms):
            recall(trace, repository, row)
        elif row is not None:
            trace.add(StepKind.STALE, repository=repository.path, **times_of(row))
        if row is not None and state is KeptState.FRESH:
            return Confirmation(Outcome.HIT, fresh_until_ms(repository, row) // 1000)
        return Confirmation(Outcome.STALE, until_ms // 1000)

    async def _refresh_tag(
        self,
        target: Target,
        tag: str,
        kept: Manifest | None,
        row: UpstreamDocument | None,
        state: KeptState,
        trace: Trace,
    ) -> Confirmation:
        repository, image = target.repository, target.image
        key = tag_key(image, tag)
        try:
            known = kept is not None or await self._catalog.look(_has_manifests, repository.id, image)
            ask = partial(self._ask_tag, target, tag, row, trace, known=known)
            found = await self._places.first(repository, image, ask, trace)
        except NotFound:
            if kept is not None and state is not KeptState.FORMER:
                return await self._note_gone(target, tag, kept, row, trace)
            if kept is not None:
                await self._publisher.change(drop_tag, repository, image, tag, key)
            self._negative_cache.note(repository, key)
            raise
        except FAILURES as error:
            if kept is None or not state.serves_after(error):
                raise
            log.warn("stale: {key} of {repository}: {error}", key=key, repository=repository.path, error=str(error))
            if row is not None:
                trace.add(StepKind.STALE, **times_of(row))
            until_ms = self._clock.now_ms() + STALE_RETRY_MS
            self._stale_until_ms.put((repository.id, key), until_ms)
            return Confirmation(Outcome.STALE, until_ms // 1000)
        self._stale_until_ms.pop((repository.id, key))
        return found

    async def _ask_tag(
        self, target: Target, tag: str, before: UpstreamDocument | None, trace: Trace, place: Place, *, known: bool
    ) -> Confirmation:
        """
        Bring a tag to the state that an upstream tells.

        If the image is ``known``, its manifest may be kept already.
        """
        repository, image = target.repository, target.image
        reference = tag
        digest = await self._head(place, tag) if known else None
        if digest is not None:
            state = self._state(repository, place, target, tag, str(digest), before)
            if await self._is_kept(repository, image, digest):
                trace.add(StepKind.CONFIRMED, what=f"{place.name}:{tag}", digest=str(digest), **times_of(state))
                state = evolve(state, trace=trace.store())
                await self._publisher.change(keep_tag, repository, image, tag, str(digest), state)
                return Confirmation(Outcome.CONFIRMED, state.fresh_until_ms // 1000)
            reference = str(digest)
        fetched = await self._fetch(place, reference, digest)
        return Confirmation(Outcome.MISS, await self._keep(target, fetched, trace, tag, before) // 1000)

    async def _fetch_digest(self, target: Target, digest: Digest, key: str, trace: Trace) -> Confirmation:
        async def ask(place: Place) -> None:
            await self._keep(target, await self._fetch(place, str(digest), digest), trace)

        try:
            await self._places.first(target.repository, target.image, ask, trace, by_digest=True)
        except NotFound:
            self._negative_cache.note(target.repository, key)
            raise
        return Confirmation(Outcome.MISS)

    async def _head(self, place: Place, tag: str) -> Digest | None:
        """The present digest of a tag; None if the registry does not tell it."""
        async with self._client.open(place, "HEAD", f"manifests/{tag}", ACCEPT) as response:
            return find_digest(response.headers.get("Docker-Content-Digest") or "")

    async def _fetch(self, place: Place, reference: str, expected: Digest | None) -> _Fetched:
        route = place.route.name
        async with self._client.open(place, "GET", f"manifests/{reference}", ACCEPT) as response:
            data = await response.read()
            digest = expected or find_digest(response.headers.get("Docker-Content-Digest") or "")
            content_type = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
            url = response.url
        if digest is not None and not digest.matches(data):
            raise UpstreamMismatch(route, f"it sent a manifest that is not the content of {digest}")
        try:
            document = await parse_in_thread(self._pools, data, content_type, other_types=True)
        except (Invalid, DigestInvalid) as error:
            raise UpstreamFailed(route, f"it sent a manifest that cannot be used: {error}") from None
        return _Fetched(place, data, document, digest, url)

    async def _keep(
        self,
        target: Target,
        fetched: _Fetched,
        trace: Trace,
        tag: str | None = None,
        before: UpstreamDocument | None = None,
    ) -> int:
        """Store a manifest, with its tag if it was asked for by one. Returns when to ask for the tag again (ms)."""
        repository, place = target.repository, fetched.place
        async with self._publisher.stage(repository) as staged:
            blob = await staged.store(fetched.data)
            digest = str(fetched.digest or f"sha256:{blob.sha256}")
            push = Push(
                manifest=fetched.document.to_record(digest, blob.sha256, len(fetched.data)),
                blob=blob,
                required=(),
                tags=() if tag is None else (tag,),
                alone=target.alone,
                upstream={"route": place.route.name, "url": fetched.url, "fetched_ms": self._clock.now_ms()},
            )
            name = f"{place.name}@{digest}" if tag is None else f"{place.name}:{tag}"
            now_ms = self._clock.now_ms()
            trace.add(StepKind.FETCHED, route=place.route.name, at_ms=now_ms, what=name, digest=digest)
            state = None
            if tag is not None:
                state = self._state(repository, place, target, tag, digest, before)
                state = evolve(state, trace=trace.store())
            await self._publisher.change_with_blobs(
                keep_manifest, repository, staged, [blob], target.image, push, state
            )
        return 0 if state is None else state.fresh_until_ms

    async def _note_gone(
        self, target: Target, tag: str, kept: Manifest, state: UpstreamDocument | None, trace: Trace
    ) -> Confirmation:
        """Keep serving a tag that its upstream does not have any more, or remove it. :raises NotFound: it is removed"""
        repository, config, now_ms = target.repository, proxy_config_of(target.repository), self._clock.now_ms()
        meta: Mapping[str, object] = {} if state is None else state.meta
        gone_ms = int(str(meta.get("gone_ms", now_ms)))
        keep_s = STALE_IF_GONE_S if config.stale_if_gone_s is None else config.stale_if_gone_s
        key = tag_key(target.image, tag)
        if now_ms >= gone_ms + keep_s * 1000:
            await self._publisher.change(drop_tag, repository, target.image, tag, key)
            self._negative_cache.note(repository, key)
            raise NotFound("tag", tag)
        until_ms = now_ms + config.negative_ttl_s * 1000
        trace.add(
            StepKind.GONE, what=f"{target.image}:{tag}", digest=kept.digest, fresh_until_ms=gone_ms + keep_s * 1000
        )
        changed = UpstreamDocument(
            key=key,
            package_key=target.image,
            route="" if state is None else state.route,
            url="" if state is None else state.url,
            meta={**meta, "digest": kept.digest, "gone_ms": gone_ms},
            trace=trace.store(),
            fetched_ms=now_ms if state is None else state.fetched_ms,
            checked_ms=now_ms,
            fresh_until_ms=until_ms,
        )
        await self._publisher.change(keep_tag, repository, target.image, tag, kept.digest, changed)
        return Confirmation(Outcome.STALE, changed.fresh_until_ms // 1000)

    def _state(
        self,
        repository: Repository,
        place: Place,
        target: Target,
        tag: str,
        digest: str,
        before: UpstreamDocument | None,
    ) -> UpstreamDocument:
        now_ms = self._clock.now_ms()
        same = before is not None and before.meta.get("digest") == digest
        return UpstreamDocument(
            key=tag_key(target.image, tag),
            package_key=target.image,
            route=place.route.name,
            url=place.route.url,
            meta={"digest": digest, "name": place.name},
            fetched_ms=before.fetched_ms if before is not None and same else now_ms,
            checked_ms=now_ms,
            fresh_until_ms=now_ms + proxy_config_of(repository).ttl_s * 1000,
        )

    async def _is_kept(self, repository: Repository, image: str, digest: Digest) -> bool:
        found: Manifest | None = await self._catalog.look(
            find_manifest, repository.storage_id, repository.id, image, str(digest)
        )
        return found is not None and bool(found.locator)


def _read_tag(
    r: Reader, repository: Repository, image: str, tag: str
) -> tuple[Manifest | None, UpstreamDocument | None]:
    """The manifest of a tag, and when an upstream last confirmed it; None where there is none."""
    row = upstream_documents.find_document(r, repository.id, tag_key(image, tag))
    if row is not None and row.url:
        row = evolve(row, meta={"address": row.url, **row.meta})
    return find_tagged(r, repository.storage_id, repository.id, image, tag), row


def _has_manifests(r: Reader, repository_id: int, image: str) -> bool:
    package = find_package(r, repository_id, image)
    return package is not None and has_manifests(r, package.id)
