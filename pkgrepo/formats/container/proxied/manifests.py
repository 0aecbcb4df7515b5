"""
Manifests of upstreams: fetched once, verified, and kept as those of a hosted image.

What is kept of a digest is always served: it cannot change. What becomes of a tag is in L{pkgrepo.proxy.kept_states}.
An upstream is asked by HEAD for the present digest of a tag, and only for one that is not kept by GET: registries limit
the number of these.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from attrs import define, evolve, field, frozen

from pkgrepo.errors import (
    Invalid,
    NotFound,
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
from pkgrepo.formats.container.proxied.holders import Place, Places, tag_key
from pkgrepo.formats.container.proxied.registry_client import RegistryClient
from pkgrepo.formats.container.target import Target
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.remembered import NegativeCache
from pkgrepo.proxy.revalidation import Current, Kept, Outcome, Revalidation, TracedRequests, times_of
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.download import is_page
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

ACCEPT: Final = {"Accept": ", ".join((OCI_INDEX, OCI_IMAGE, DOCKER_LIST, DOCKER_IMAGE, OCI_ARTIFACT))}
STALE_IF_GONE_S: Final = 7 * 86_400  # time to notice, and to bring back, what upstream has removed


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

    catalog: ICatalog
    publisher: Publisher
    places: Places
    _pools: Pools
    _clock: Clock
    _client: RegistryClient
    _revalidation: Revalidation
    _negative_cache: NegativeCache
    _counters: CacheCounters
    _in_flight: TracedRequests[Current[Manifest | None]] = field(factory=TracedRequests, init=False)

    async def ensure(
        self, target: Target, reference: str, trace: Trace | None = None, *, revalidate: bool = False
    ) -> Current[Manifest | None]:
        """
        Fetch a manifest, unless what is kept can be served. With ``revalidate`` a tag is confirmed again.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known, and nothing is kept
        """
        trace = trace or Trace()
        if is_tag(reference):
            return await self._revalidation.get(_Tag(self, target, reference), trace, revalidate=revalidate)
        try:
            return await self._ensure_digest(target, reference, trace)
        except NotFound:
            self._counters.add(target.repository.id, CacheCounts(absent=1))
            raise

    async def _ensure_digest(self, target: Target, reference: str, trace: Trace) -> Current[Manifest | None]:
        repository, image = target.repository, target.image
        digest = find_digest(reference)
        if digest is None:
            raise NotFound("manifest" if is_digest_like(reference) else "tag", reference)
        if await self.is_kept(repository, image, digest):
            trace.add(StepKind.FILE_KEPT, repository=repository.path, what=reference, digest=str(digest))
            return Current(None, Outcome.HIT)
        key = f"manifest/{image}@{digest}"
        self._negative_cache.check(repository, key, trace, what="image")
        found = await self._in_flight.run(repository, key, partial(self._fetch_digest, target, digest, key), trace)
        self._counters.add(repository.id, found.outcome.value)
        return found

    async def ask_tag(
        self, target: Target, tag: str, before: UpstreamDocument | None, trace: Trace, place: Place, *, known: bool
    ) -> Current[Manifest | None]:
        """
        Bring a tag to the state that an upstream tells.

        If the image is ``known``, its manifest may be kept already.
        """
        repository, image = target.repository, target.image
        reference = tag
        digest = await self._head(place, tag) if known else None
        if digest is not None:
            state = self._state(repository, place, target, tag, str(digest), before)
            if await self.is_kept(repository, image, digest):
                trace.add(StepKind.CONFIRMED, what=f"{place.name}:{tag}", digest=str(digest), **times_of(state))
                state = evolve(state, trace=trace.store())
                await self.publisher.change(keep_tag, repository, image, tag, str(digest), state)
                return Current(None, Outcome.CONFIRMED, state.fresh_until_ms)
            reference = str(digest)
        fetched = await self._fetch(place, reference, digest)
        return Current(None, Outcome.MISS, await self._keep(target, fetched, trace, tag, before))

    async def _fetch_digest(self, target: Target, digest: Digest, key: str, trace: Trace) -> Current[Manifest | None]:
        async def ask(place: Place) -> None:
            await self._keep(target, await self._fetch(place, str(digest), digest), trace)

        try:
            await self.places.first(target.repository, target.image, ask, trace, by_digest=True)
        except NotFound:
            self._negative_cache.note(target.repository, key, trace)
            raise
        return Current(None, Outcome.MISS)

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
            sent = "web page" if is_page(response) else "manifest"
            raise UpstreamFailed(route, f"it sent a {sent} that cannot be used: {error}") from None
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
        async with self.publisher.stage(repository) as staged:
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
            await self.publisher.change_with_blobs(keep_manifest, repository, staged, [blob], target.image, push, state)
        return 0 if state is None else state.fresh_until_ms

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

    async def is_kept(self, repository: Repository, image: str, digest: Digest) -> bool:
        """Whether the bytes of a manifest are kept."""
        found: Manifest | None = await self.catalog.look(
            find_manifest, repository.storage_id, repository.id, image, str(digest)
        )
        return found is not None and bool(found.locator)


@frozen(eq=False)
class _Tag:
    """A tag of an image, whose content is the manifest that it points to; see L{Cached}."""

    manifests: UpstreamManifests
    target: Target
    tag: str
    what = "image"
    most_ttl_s = None
    gone_s = STALE_IF_GONE_S

    @property
    def repository(self) -> Repository:
        return self.target.repository

    @property
    def package(self) -> str:
        return self.target.image

    @property
    def key(self) -> str:
        return tag_key(self.target.image, self.tag)

    async def find(self) -> tuple[Manifest | None, UpstreamDocument | None]:
        kept, row = await self.manifests.catalog.look(_read_tag, self.repository, self.package, self.tag)
        return (kept if kept is not None and kept.locator else None), row

    async def ask(self, kept: Kept[Manifest | None], trace: Trace) -> Current[Manifest | None]:
        manifests, repository = self.manifests, self.repository
        known = kept.content is not None or await manifests.catalog.look(_has_manifests, repository.id, self.package)
        ask = partial(manifests.ask_tag, self.target, self.tag, kept.row, trace, known=known)
        return await manifests.places.first(repository, self.package, ask, trace)

    async def renew(self, content: Manifest | None, row: UpstreamDocument) -> None:
        assert content is not None, "it is kept"
        row = evolve(row, meta={**row.meta, "digest": content.digest})
        change = self.manifests.publisher.change
        await change(keep_tag, self.repository, self.package, self.tag, content.digest, row)

    async def drop(self) -> None:
        await self.manifests.publisher.change(drop_tag, self.repository, self.package, self.tag, self.key)

    def step(self, content: Manifest | None) -> dict[str, str]:
        return {"what": f"{self.package}:{self.tag}", "digest": "" if content is None else content.digest}


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
