"""
Manifests of upstreams: fetched once, verified, and kept as those of a hosted image.

What is kept of a digest is always served: it cannot change. What becomes of a tag is in
L{pkgrepo.proxy.caching.states}. An upstream is asked by HEAD for the present digest of a tag, and only for one that is
not kept by GET: registries limit the number of these.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from attrs import define, evolve, frozen

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import (
    Invalid,
    NotFound,
    UpstreamFailed,
    UpstreamMismatch,
)
from pkgrepo.formats.container.documents import (
    DOCKER_IMAGE,
    DOCKER_LIST,
    MANIFEST_SIZE,
    MOST_LAYERS,
    OCI_ARTIFACT,
    OCI_IMAGE,
    OCI_INDEX,
    ManifestDocument,
    parse_in_thread,
)
from pkgrepo.formats.container.evidence import HEAD, begins_document
from pkgrepo.formats.container.names import Digest, DigestInvalid, find_digest, is_digest_like, is_tag
from pkgrepo.formats.container.proxied.holders import Places, tag_key
from pkgrepo.formats.container.proxied.registry_client import RegistryClient
from pkgrepo.formats.container.target import Target
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.revalidation import Cached, Current, Kept, Outcome, Revalidation, times_of
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.caching.states import ttl_ms
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.download import is_page
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.images.cached import drop_tag, keep_manifest, keep_tag, renew_tag
from pkgrepo.repositories.images.push import Push
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest, find_tagged, has_manifests
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

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
    content: ContentWriter
    places: Places
    clock: Clock
    _pools: Pools
    _client: RegistryClient
    _revalidation: Revalidation

    async def ensure(
        self, target: Target, reference: str, trace: Trace | None = None, *, revalidate: bool = False
    ) -> Current[Manifest | None]:
        """
        Fetch a manifest, unless what is kept can be served. With ``revalidate`` a tag is confirmed again.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known, and nothing is kept
        """
        trace, repository, image = trace or Trace(), target.repository, target.image
        if is_tag(reference):
            key = tag_key(image, reference)
            tag = _Tag(
                self,
                target,
                reference,
                repository=repository,
                key=key,
                name=image,
                package=image,
                gone_s=STALE_IF_GONE_S,
            )
            return await self._revalidation.get(tag, trace, revalidate=revalidate)
        digest = find_digest(reference)
        if digest is None:
            raise NotFound("manifest" if is_digest_like(reference) else "tag", reference)
        if await self.is_kept(repository, image, digest):
            trace.add(StepKind.FILE_KEPT, repository=repository.path, what=reference, digest=str(digest))
            return Current(None, Outcome.HIT)
        key = f"manifest/{image}@{digest}"
        missing = _Manifest(self, target, digest, repository=repository, key=key, name=image, package=image)
        return await self._revalidation.get(missing, trace)

    async def head(self, place: Place, tag: str) -> Digest | None:
        """The present digest of a tag; None if the registry does not tell it."""
        async with self._client.open(place, "HEAD", f"manifests/{tag}", ACCEPT) as response:
            return find_digest(response.headers.get("Docker-Content-Digest") or "")

    async def fetch(self, place: Place, reference: str, expected: Digest | None) -> _Fetched:
        """A manifest as an upstream has it. :raises UpstreamMismatch: it is not the ``expected`` one"""
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
        if document.evidence:
            document = evolve(document, evidence=await self._is_evidence(place, document))
        return _Fetched(place, data, document, digest, url)

    async def _is_evidence(self, place: Place, document: ManifestDocument) -> bool:
        """
        Whether the layers of a manifest, which are documents by their types, are that by their content.

        They are fetched for that, once for each manifest that is kept. Of many or large ones it is not so.

        :raises UpstreamFailed: one cannot be had
        """
        layers = {each.digest: each.size for each in document.required if each.kind == "layer"}
        named = {digest for digest, kind in document.references if kind == "layer"}
        if named != layers.keys() or len(layers) > MOST_LAYERS or sum(layers.values()) > MANIFEST_SIZE:
            return False
        for name in layers:
            digest = find_digest(name)
            try:
                async with self._client.open(place, "GET", f"blobs/{name}") as response:
                    data = await response.read()
            except NotFound:
                return False
            if digest is None or not digest.matches(data) or not begins_document(data[:HEAD]):
                return False
        return True

    async def keep(
        self,
        target: Target,
        fetched: _Fetched,
        trace: Trace,
        tag: str | None = None,
        state: Callable[[str], UpstreamDocument] | None = None,
    ) -> UpstreamDocument | None:
        """Store a manifest, with its tag if it was asked for by one. Returns the row of the tag: its ``state``."""
        repository, place, now_ms = target.repository, fetched.place, self.clock.now_ms()
        async with self.content.stage(repository) as staged:
            blob = await staged.store(fetched.data)
            digest = str(fetched.digest or f"sha256:{blob.sha256}")
            push = Push(
                manifest=fetched.document.to_record(digest, blob.sha256, len(fetched.data)),
                blob=blob,
                required=(),
                tags=() if tag is None else (tag,),
                alone=target.alone,
                upstream={"route": place.route.name, "url": fetched.url, "fetched_ms": now_ms},
            )
            name = f"{place.name}@{digest}" if tag is None else f"{place.name}:{tag}"
            trace.add(StepKind.FETCHED, route=place.route.name, at_ms=now_ms, what=name, digest=digest)
            row = None if state is None else evolve(state(digest), trace=trace.store())
            await self.content.change_with_blobs(
                keep_manifest, repository, staged, [blob], target.image, push, row, admit_server(Road.PROXY, repository)
            )
        return row

    async def is_kept(self, repository: Repository, image: str, digest: Digest) -> bool:
        """Whether the bytes of a manifest are kept."""
        found: Manifest | None = await self.catalog.look(
            find_manifest, repository.storage_id, repository.id, image, str(digest)
        )
        return found is not None and bool(found.locator)


@define(eq=False)
class _Manifest(Cached[Manifest | None]):
    """A manifest that is not kept, by its digest."""

    manifests: UpstreamManifests
    target: Target
    digest: Digest
    what = "image"

    async def find(self) -> tuple[Manifest | None, UpstreamDocument | None]:
        return None, None

    async def ask(self, _kept: Kept[Manifest | None], trace: Trace) -> Current[Manifest | None]:
        async def ask(place: Place) -> Current[Manifest | None]:
            fetched = await self.manifests.fetch(place, str(self.digest), self.digest)
            await self.manifests.keep(self.target, fetched, trace)
            return Current(None, Outcome.MISS)

        return await self.manifests.places.first(self.repository, self.package, ask, trace, by_digest=True)


@define(eq=False)
class _Tag(Cached[Manifest | None]):
    """A tag of an image, whose content is the manifest that it points to."""

    manifests: UpstreamManifests
    target: Target
    tag: str
    what = "image"

    async def find(self) -> tuple[Manifest | None, UpstreamDocument | None]:
        kept, row = await self.manifests.catalog.look(_read_tag, self.repository, self.package, self.tag)
        return (kept if kept is not None and kept.locator else None), row

    async def ask(self, kept: Kept[Manifest | None], trace: Trace) -> Current[Manifest | None]:
        """If the image is known, its manifest may be kept already: then only its digest is asked for."""
        manifests, tag = self.manifests, self.tag
        known = kept.content is not None
        known = known or await manifests.catalog.look(_has_manifests, self.repository.id, self.package)

        async def ask(place: Place) -> Current[Manifest | None]:
            digest = await manifests.head(place, tag) if known else None
            if digest is not None and await manifests.is_kept(self.repository, self.package, digest):
                row = self._row(place, kept.row, str(digest))
                trace.add(StepKind.CONFIRMED, what=f"{place.name}:{tag}", digest=str(digest), **times_of(row))
                row = evolve(row, trace=trace.store())
                with suppress(NotFound):  # it was removed meanwhile, which does not mean that upstreams lack it
                    await manifests.content.change(
                        keep_tag,
                        self.repository,
                        self.package,
                        tag,
                        str(digest),
                        row,
                        admit_server(Road.PROXY, self.repository),
                    )
                    return Current(None, Outcome.CONFIRMED, row.fresh_until_ms)
            fetched = await manifests.fetch(place, tag if digest is None else str(digest), digest)
            stored = await manifests.keep(self.target, fetched, trace, tag, partial(self._row, place, kept.row))
            return Current(None, Outcome.MISS, 0 if stored is None else stored.fresh_until_ms)

        return await manifests.places.first(self.repository, self.package, ask, trace)

    def _row(self, place: Place, before: UpstreamDocument | None, digest: str) -> UpstreamDocument:
        now_ms = self.manifests.clock.now_ms()
        same = before is not None and before.meta.get("digest") == digest
        return UpstreamDocument(
            key=self.key,
            package_key=self.package,
            route=place.route.name,
            url=place.route.url,
            meta={"digest": digest, "name": place.name},
            fetched_ms=before.fetched_ms if before is not None and same else now_ms,
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(self.repository),
        )

    async def renew(self, content: Manifest | None, row: UpstreamDocument) -> Manifest | None:
        assert content is not None, "it is kept"
        row = evolve(row, meta={**row.meta, "digest": content.digest})
        change = self.manifests.content.change
        await change(renew_tag, self.repository, self.package, self.tag, content.digest, row)
        return content

    async def drop(self, _absence: UpstreamDocument, before_ms: int) -> None:
        change = self.manifests.content.change
        await change(drop_tag, self.repository, self.package, self.tag, self.key, before_ms)

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
