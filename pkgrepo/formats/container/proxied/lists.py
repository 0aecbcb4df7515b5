"""
Lists of upstreams: the tags of an image, and the referrers of a manifest.

They are kept whole; what becomes of them is in L{pkgrepo.proxy.caching.states}. A list of tags that is too long for
that is kept in parts, each of which is fetched when a client comes to it. An upstream without the referrers API has an
index of them under a tag (OCI distribution 1.1, "Referrers Tag Schema").
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self

import msgspec
from attrs import define, frozen

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.container.names import Digest, find_digest, is_tag
from pkgrepo.formats.container.proxied.blobs import UpstreamBlobs
from pkgrepo.formats.container.proxied.contents import ImageContents
from pkgrepo.formats.container.proxied.holders import Holders, Places
from pkgrepo.formats.container.proxied.labels import ImageLabels
from pkgrepo.formats.container.proxied.manifests import ACCEPT, STALE_IF_GONE_S, UpstreamManifests
from pkgrepo.formats.container.proxied.registry_client import RegistryClient, UpstreamTokens, next_page
from pkgrepo.formats.container.proxied.serving_rules import ImageRules
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.revalidation import Cached, Current, Kept, Outcome, Revalidation
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.caching.states import ttl_ms
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.untrusted.strict_json import ERRORS

ACCEPT_LISTS: Final = {"Accept": f"{ACCEPT['Accept']}, application/json"}
PAGE: Final = 1000
MOST_PAGES: Final = 100
MOST_TAGS: Final = 50_000  # of a part
MOST_PARTS: Final = 100
MOST_REFERRERS: Final = 2000
MOST_BYTES: Final = 4 * 1024 * 1024  # of the entries of a list of referrers

_SHOWN = ("mediaType", "digest", "size", "artifactType", "annotations")


class _TagPage(msgspec.Struct):
    tags: list[str] | None = None


class _Index(msgspec.Struct):
    manifests: list[dict[str, Any]] | None = None


Answered = tuple[Sequence[Any], str | None]  # entries, and the rest of the path of what follows them
Ask = Callable[[Place], Awaitable[Answered]]


@frozen
class UpstreamList:
    """A list, the row that has it, and until when it can be used."""

    entries: Sequence[Any]
    document: UpstreamDocument
    found: Current[UpstreamDocument]

    @property
    def following(self) -> str | None:
        """The rest of the path of the next part; None if there is none."""
        rest: str | None = self.document.meta.get("following")
        return rest


@define(eq=False)
class _List(Cached[UpstreamDocument]):
    """A list, whose content is its row. ``ask_place`` asks an upstream for it."""

    lists: UpstreamLists
    ask_place: Ask
    what = "image"

    async def find(self) -> tuple[UpstreamDocument | None, UpstreamDocument | None]:
        row = await self.lists.catalog.look(upstream_documents.find_document, self.repository.id, self.key)
        return row, row

    async def ask(self, kept: Kept[UpstreamDocument], trace: Trace) -> Current[UpstreamDocument]:
        async def ask(place: Place) -> tuple[Route, Answered]:
            return place.route, await self.ask_place(place)

        before, now_ms = kept.row, self.lists.clock.now_ms()
        route, (entries, following) = await self.lists.places.first(self.repository, self.package, ask, trace)
        meta = {"entries": entries, **({"following": following} if following else {})}
        same = before is not None and all(before.meta.get(each) == meta.get(each) for each in ("entries", "following"))
        trace.add(StepKind.FETCHED, route=route.name, at_ms=now_ms, what=self.key)
        row = UpstreamDocument(
            key=self.key,
            package_key=self.package,
            route=route.name,
            meta={**meta, "address": route.url},
            trace=trace.store(),
            fetched_ms=before.fetched_ms if before is not None and same else now_ms,
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(self.repository),
        )
        await self.lists.content.change(upstream_documents.put_document, self.repository, row, None)
        return Current(row, Outcome.MISS, row.fresh_until_ms, row)

    async def renew(self, _content: UpstreamDocument, row: UpstreamDocument) -> UpstreamDocument:
        await self.lists.content.change(upstream_documents.renew_document, self.repository, row)
        return row

    async def drop(self, _absence: UpstreamDocument, before_ms: int) -> None:
        change = self.lists.content.change
        await change(upstream_documents.remove_earlier, self.repository, self.key, before_ms)

    def step(self, _content: UpstreamDocument) -> dict[str, str]:
        return {"what": self.key}


@define(eq=False, kw_only=True)
class UpstreamLists:
    """Keeps the lists of all proxy repositories."""

    catalog: ICatalog
    content: ContentWriter
    clock: Clock
    places: Places
    _client: RegistryClient
    _revalidation: Revalidation

    async def tags(
        self, repository: Repository, image: str, trace: Trace | None = None, *, after: str = ""
    ) -> UpstreamList:
        """
        All tags of an image in bytewise order, or the part of them that has those ``after`` one.

        Registries list tags in this order (OCI distribution 1.1, "Listing Tags").

        :raises NotFound: there is no such image; :raises UpstreamFailed: that is not known, and no list is kept
        """
        key = f"tags/{image}"
        found = await self._get(
            repository, image, key, partial(self._ask_tags, f"tags/list?n={PAGE}"), trace, gone_s=STALE_IF_GONE_S
        )
        for _ in range(MOST_PARTS):
            if found.following is None or after < found.entries[-1]:
                break
            name = hashlib.sha256(found.following.encode()).hexdigest()[:16]
            ask = partial(self._ask_tags, found.following)
            last, found = (
                found.entries[-1],
                await self._get(repository, image, f"{key}+{name}", ask, trace, gone_s=STALE_IF_GONE_S),
            )
            if not found.entries or found.entries[-1] <= last:
                break  # the list of this upstream leads back
        return found

    async def referrers(self, repository: Repository, image: str, digest: Digest) -> UpstreamList:
        """
        The descriptors of all referrers of a digest, in the order of their digests.

        :raises NotFound: it has none; :raises UpstreamFailed: that is not known, and no list is kept
        """
        key = f"referrers/{image}@{digest}"
        return await self._get(repository, image, key, lambda place: self._ask_referrers(place, digest))

    async def _get(
        self, repository: Repository, image: str, key: str, ask: Ask, trace: Trace | None = None, *, gone_s: int = 0
    ) -> UpstreamList:
        cached = _List(self, ask, repository=repository, key=key, name=image, package=image, gone_s=gone_s)
        found = await self._revalidation.get(cached, trace or Trace())
        return UpstreamList(found.content.meta["entries"], found.row or found.content, found)

    async def _ask_tags(self, first: str, place: Place) -> Answered:
        found: set[str] = set()
        rest: str | None = first
        for _ in range(MOST_PAGES):
            if rest is None or len(found) >= MOST_TAGS:
                break
            page, rest = await self._page(place, rest, _TagPage)
            found.update(each for each in page.tags or () if is_tag(each))
        return sorted(found), rest if found else None

    async def _ask_referrers(self, place: Place, digest: Digest) -> Answered:
        try:
            found = await self._read_referrers(place, f"referrers/{digest}")
        except NotFound:
            # cut as the specification says: tags have at most 128 characters
            found = await self._read_referrers(place, f"manifests/{digest.algorithm[:32]}-{digest.hex[:64]}")
        if not found:
            # Registries say this of every digest and image, so that it does not tell where the image is.
            raise NotFound("referrer", str(digest))
        return found, None

    async def _read_referrers(self, place: Place, first: str) -> Sequence[Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        size = 0
        rest: str | None = first
        for _ in range(MOST_PAGES):
            if rest is None or size > MOST_BYTES or len(found) >= MOST_REFERRERS:
                break
            page, rest = await self._page(place, rest, _Index)
            for each in page.manifests or ():
                entry = _read_entry(each)
                if entry is not None:
                    found.setdefault(entry["digest"], entry)
                    size += len(msgspec.json.encode(entry))
        return [found[digest] for digest in sorted(found)]

    async def _page(self, place: Place, rest: str, kind: type[Any]) -> tuple[Any, str | None]:
        """A page of a list, and the rest of the path of the next one."""
        async with self._client.open(place, "GET", rest, ACCEPT_LISTS) as response:
            data = await response.read()
            link = response.headers.get("Link")
        try:
            return msgspec.json.decode(data, type=kind), next_page(rest, link)
        except ERRORS:
            raise UpstreamFailed(place.route.name, "it sent a list that cannot be used") from None


def _read_entry(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """A descriptor as our own lists have them; None if it is malformed."""
    entry = {key: value[key] for key in _SHOWN if key in value}
    well_formed = (
        isinstance(entry.get("mediaType"), str)
        and isinstance(entry.get("digest"), str)
        and find_digest(entry["digest"]) is not None
        and isinstance(entry.get("size"), int)
        and isinstance(entry.get("artifactType", ""), str)
        and isinstance(entry.get("annotations", {}), dict)
    )
    return entry if well_formed else None


@frozen
class UpstreamImages:
    """Images of the upstreams of all proxy repositories."""

    holders: Holders
    manifests: UpstreamManifests
    rules: ImageRules
    blobs: UpstreamBlobs
    lists: UpstreamLists

    @classmethod
    def make(cls, services: Services) -> Self:
        """The parts, with empty memories, except for that of what no upstream has."""
        catalog, content, clock = services.catalog, services.content, services.clock
        client = RegistryClient(services.proxy.upstreams, UpstreamTokens(lambda: clock.now_ms() / 1000))
        places, negative_cache = Places(catalog, clock), services.proxy.negative_cache
        revalidation = services.proxy.revalidation
        manifests = UpstreamManifests(
            catalog=catalog,
            content=content,
            pools=services.pools,
            clock=clock,
            client=client,
            places=places,
            revalidation=revalidation,
        )
        blobs = UpstreamBlobs(
            catalog=catalog,
            content=content,
            transfers=services.proxy.transfers,
            client=client,
            places=places,
            negative_cache=negative_cache,
            counters=services.proxy.counters,
            largest=services.max_upload,
        )
        return cls(
            holders=Holders(catalog=catalog, resolver=services.proxy.resolver, clock=clock),
            manifests=manifests,
            rules=ImageRules(
                catalog=catalog,
                clock=clock,
                manifests=manifests,
                labels=ImageLabels(services, manifests, blobs),
                contents=ImageContents(services, manifests, blobs),
                resolver=services.proxy.resolver,
                matches=services.proxy.matches,
            ),
            blobs=blobs,
            lists=UpstreamLists(
                catalog=catalog,
                content=content,
                clock=clock,
                client=client,
                places=places,
                revalidation=revalidation,
            ),
        )
