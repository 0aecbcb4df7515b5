"""
Metadata of upstreams: asked, normalised, kept, and asked again when it is no longer fresh.

What becomes of it is in L{pkgrepo.proxy.caching.revalidation}. Of what a list names that is kept, too:

==========  ===================================================  =====================================================
document    meaning                                              next
==========  ===================================================  =====================================================
named       a fresh list of its upstream names these bytes       it is as confirmed
not named   that list came later, and names other bytes          it is old
==========  ===================================================  =====================================================

A client is answered as soon as a response is normalised; it is stored afterwards, and held in memory until then. An
answer that replaces another one is stored first. A document that a route does not have is made of others of that route,
and of files of it, if the question has a composition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define, evolve
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import BlobMissing, NotFound, UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.revalidation import Cached, Current, Kept, Outcome, Revalidation
from pkgrepo.proxy.caching.search_order import Place, RouteSearch, SearchOrder
from pkgrepo.proxy.caching.states import GONE, confirm, is_current, later, ttl_ms
from pkgrepo.proxy.configuration import proxy_config_of, routes_of
from pkgrepo.proxy.leases import Turns
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import LACKING, UpstreamDocument

from .asking import Asker, Confirmed, Question
from .kept import KeptResponses
from .questions import DocumentRequest, Held, Listing, Received, Sources, UnstoredParts

T = TypeVar("T")

log = Logger()
MOST_VERDICTS: Final = 20_000


class Listings:
    """Compares documents with their lists, once for each state of both."""

    def __init__(self, kept: KeptResponses) -> None:
        self._kept = kept
        self._verdicts: StampCache[tuple[int, str], bool | None] = StampCache(MOST_VERDICTS)

    async def listed_ms(self, repository: Repository, request: DocumentRequest) -> int:
        """When the list came that names a document; 0 if none is kept."""
        found = None if request.listing is None else await self._find(repository, request.listing)
        return 0 if found is None else found.document.fetched_ms

    async def compare(self, repository: Repository, request: DocumentRequest, held: Held, now_ms: int) -> Held:
        """A response with what the list says of it."""
        listing, document = request.listing, held.document
        found = None if listing is None or not document.found else await self._find(repository, listing)
        if found is None or listing is None:
            return held
        stamp = (found.document.fetched_ms, document.fetched_ms)
        named = None
        if now_ms < found.document.fresh_until_ms:
            place = (repository.id, document.key)
            ask = partial(self._confirms, repository, listing, found, request.name, document.meta.get("md5"))
            named = await self._verdicts.get(place, stamp, ask)
        if (stamp[0], named) == (held.listed_ms, held.named):
            return held
        return evolve(held, listed_ms=stamp[0], named=named)

    async def lists(self, repository: Repository, listing: Listing, found: Held, name: str) -> bool:
        """Whether a list names a document that has content."""
        return await self._confirms(repository, listing, found, name, listing.empty_md5) is False

    async def _find(self, repository: Repository, listing: Listing) -> Held | None:
        found = await self._kept.find_grown(repository, listing.request)
        return found if found is not None and found.document.found else None

    async def _confirms(
        self, repository: Repository, listing: Listing, found: Held, name: str, md5: str | None
    ) -> bool | None:
        with suppress(BlobMissing, PartsDamaged):  # the next reader of the list has it replaced
            if md5 is not None:
                return await self._kept.read(repository, found, partial(listing.confirms, name, md5))
        return None


class Documents:
    """The responses of all upstreams of all proxy repositories, as this process serves them."""

    def __init__(
        self,
        *,
        kept: KeptResponses,
        asker: Asker,
        upstreams: Upstreams,
        clock: Clock,
        revalidation: Revalidation,
        turns: Turns | None = None,
    ) -> None:
        self.kept = kept
        self.asker = asker
        self.upstreams = upstreams
        self.clock = clock
        self.turns = turns
        self.listings = Listings(kept)
        self._revalidation = revalidation

    async def get(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """
        What upstreams have at present, see ``answer``.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: an upstream failed, and there is no old response
        """
        held = await self.answer(repository, request, trace, revalidate=revalidate)
        if not held.document.found:
            raise held.missing(request.name)
        return held

    async def answer(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """
        The present answer to a question; upstreams are asked if it is not fresh, once for all who wait.

        It may be that no upstream has it. With ``revalidate`` a fresh answer is confirmed again, at most every
        ``REVALIDATE_MS``.

        :raises UpstreamFailed: an upstream failed, and there is no old response
        """
        found = await self._revalidation.find(self._of(repository, request), trace, revalidate=revalidate)
        held = _held(found)
        listed_ms = await self.listings.listed_ms(repository, request)
        return held if held.listed_ms == listed_ms else evolve(held, listed_ms=listed_ms)

    async def read(self, repository: Repository, request: DocumentRequest, held: Held, work: Callable[..., T]) -> T:
        """
        The result of ``work``, which is called on a thread with the parts of a response; those of its base are before.

        If they are lost or damaged, upstreams are asked again, and what they have now is read.

        :raises NotFound, UpstreamFailed: see ``get``
        """
        try:
            return await self.kept.read(repository, held, work)
        except (BlobMissing, PartsDamaged):
            log.warn("parts of {key} of {repository} are damaged", key=request.key, repository=repository.path)
        await self.kept.distrust(repository, held)
        anew = _held(await self._revalidation.ask_anew(self._of(repository, request), Trace()))
        if not anew.document.found:
            raise anew.missing(request.name)
        return await self.kept.read(repository, anew, work)

    async def find(self, repository: Repository, key: str) -> Held | None:
        """The answer to a question as it is kept, fresh or not; None if there is none."""
        return await self.kept.find(repository, key)

    async def find_served(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The response that clients have got last; None if there is none, or its route is there no more."""
        held = await self.kept.find_grown(repository, request)
        if held is None or not held.document.found or not is_current(repository, held.document):
            return None
        return held

    async def expire(self, repository: Repository, request: DocumentRequest, checked_ms: int) -> None:
        """Ask upstreams the next time, also for a list that names the document, unless that was done since a time."""
        for each in (request,) if request.listing is None else (request, request.listing.request):
            held = await self.kept.find_grown(repository, each)
            if held is not None and held.document.found and held.document.checked_ms <= checked_ms:
                self.kept.hold(repository, evolve(held, document=evolve(held.document, fresh_until_ms=0)))
                self._revalidation.expire(self._of(repository, each))

    async def lack(self, repository: Repository, request: DocumentRequest, lacking: Mapping[str, str]) -> None:
        """Note that files which the response lists cannot be had: their identities by path."""
        await self.kept.lack(repository, request.key, lacking)

    def _of(self, repository: Repository, request: DocumentRequest) -> _Document:
        return _Document(
            self,
            request,
            repository=repository,
            key=request.key,
            name=request.name,
            package=request.package_key,
            most_ttl_s=request.most_ttl_s,
            of_many=not request.owner,
        )


def _held(found: Current[Held]) -> Held:
    """An answer as it is served: also that no upstream has it, or that one failed."""
    held: Held | None = found.content
    if held is None:
        assert found.row is not None, "it says that there is nothing"
        held = Held(found.row, stored=False)
    if found.failure is None:
        return held
    document = evolve(held.document, fresh_until_ms=found.until_ms)
    return evolve(held, document=document, failure=found.failure)


def _lacking(before: UpstreamDocument | None) -> Mapping[str, Any]:
    """What is known of files that cannot be had, which another response may list again."""
    return {key: value for key, value in ({} if before is None else before.meta).items() if key == LACKING}


@define(eq=False)
class _Document(Cached[Held]):
    """The answer to a question. Of processes that ask it at a time, one asks until it has stored the response."""

    documents: Documents
    request: DocumentRequest
    what = "package"
    lasting_absences = True
    counts_hits = True

    async def find(self) -> tuple[Held | None, UpstreamDocument | None]:
        documents, repository = self.documents, self.repository
        held = await documents.kept.find_grown(repository, self.request)
        if held is None or not held.document.found:
            return None, None if held is None else held.document
        if self.request.listing is None:
            return held, held.document
        held = await documents.listings.compare(repository, self.request, held, documents.clock.now_ms())
        row = held.document
        if held.named is False and row.checked_ms <= held.listed_ms and GONE not in row.meta:
            row = evolve(row, fresh_until_ms=0)
        return held, row

    async def begin(self) -> Callable[[Current[Held] | None], None] | None:
        documents, repository_id = self.documents, self.repository.id
        if documents.turns is None:
            return None
        turn = await documents.turns.begin(repository_id, self.key)

        def end(found: Current[Held] | None) -> None:
            row = None if found is None else found.row
            documents.kept.when_stored(self.repository, self.key if row is None else row.key, turn.end)

        return end

    async def ask(self, kept: Kept[Held], trace: Trace) -> Current[Held]:
        repository, request, old = self.repository, self.request, kept.content
        if old is not None and not is_current(repository, old.document):
            old = None
        if old is not None and old.named:
            return self._confirmed(old, Confirmed(old.document.etag, old.document.last_modified), trace)
        search = RouteSearch(
            [
                Place(repository.id, each)
                for each in routes_of(repository, request.package_key)
                if request.route in ("", each.name)
            ],
            trace,
            self.documents.clock,
            order=SearchOrder(same=proxy_config_of(repository).replicas),
            is_known=lambda place: old is not None and old.document.route == place.route.name,
        )

        async def ask_route(place: Place) -> Current[Held]:
            mine = old if old is not None and old.document.route == place.route.name else None
            response = await self._ask_route(place.route, kept.content, mine, trace)
            if response is None:
                raise NotFound(self.what, self.name)
            if isinstance(response, Received):
                return await self._received(place.route, kept, response, trace)
            assert mine is not None, "a route confirms only its own answer"
            return self._confirmed(mine, response, trace)

        return await search.first(ask_route, NotFound(self.what, self.name))

    async def renew(self, content: Held, row: UpstreamDocument) -> Held:
        return self.documents.kept.renew(self.repository, evolve(content, document=row))

    async def drop(self, absence: UpstreamDocument, before_ms: int) -> None:
        row = evolve(absence, package_key=self.request.owner)
        await self.documents.kept.put_absent(self.repository, row, before_ms)

    def step(self, content: Held) -> dict[str, object]:
        return {"route": content.document.route, "fetched_ms": content.document.fetched_ms}

    async def _ask_route(
        self, route: Route, before: Held | None, mine: Held | None, trace: Trace
    ) -> Confirmed | Received | None:
        """What a route has, or what is made of its other documents; ``mine`` is its own earlier response."""
        documents, repository, request = self.documents, self.repository, self.request
        question = Question(repository, route, request, None if mine is None else mine.document, before)
        sources = Sources(repository, route, documents, documents.upstreams, mine, request.package_key)
        if request.service is not None:
            service = await sources.read(request.service, lambda parts: parts.top)
            if service is None:
                raise UpstreamFailed(route.name, f"it has no {request.service.name}")
            question = evolve(question, service=service)
        response = await documents.asker.ask(question)
        if response is not None:
            return response
        if request.listing is not None and await self._is_listed(route, request.listing):
            raise UpstreamFailed(route.name, f"its {request.listing.request.name} names {request.name}, which it lacks")
        if request.composition is None:
            return None
        try:
            made = await documents.asker.make(question, request.composition, sources)
            if made is None and sources.failure is not None:
                raise sources.failure.with_traceback(None)
            return made
        finally:
            trace.add(StepKind.ASKED, route=route.name, at_ms=documents.clock.now_ms(), why=sources.asked)

    async def _is_listed(self, route: Route, listing: Listing) -> bool:
        """Whether a route lists a document that it says it does not have. It is asked if a list is kept that does."""
        documents, repository, name = self.documents, self.repository, self.request.name
        kept = await documents.kept.find_grown(repository, listing.request)
        if kept is None or not kept.document.found or kept.document.route != route.name:
            return False
        if not await documents.listings.lists(repository, listing, kept, name):
            return False
        present = await documents.answer(repository, listing.request, Trace(), revalidate=True)
        return present.document.found and await documents.listings.lists(repository, listing, present, name)

    async def _received(self, route: Route, kept: Kept[Held], response: Received, trace: Trace) -> Current[Held]:
        """
        Serve a new response. What it is staged in is handed over to the task that stores it.

        If it takes the place of another one it is stored first, unless that fails: files that are kept may be others
        now, and all processes must know that before a client has the response.
        """
        documents, repository, before = self.documents, self.repository, kept.content
        now_ms = documents.clock.now_ms()
        trace.add(StepKind.FETCHED, route=route.name, at_ms=now_ms)
        document = UpstreamDocument(
            key=response.key,
            package_key=self.request.owner,
            route=route.name,
            url=response.url,
            etag=response.etag,
            last_modified=response.last_modified,
            source=response.source,
            sha256=response.parts.sha256,
            meta={"release": __version__, "address": route.url, **_lacking(kept.row), **response.meta},
            trace=trace.store(),
            fetched_ms=later(now_ms, None if kept.row is None else kept.row.fetched_ms),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(repository, self.most_ttl_s),
        )
        held = Held(document, UnstoredParts(response.content), stored=False)
        if before is not None and response.key == self.request.tail_key:
            held = evolve(held, base=before.base or before)
        documents.kept.put(repository, held, response)
        if before is not None:
            await documents.kept.stored(repository, response.key)
            found = await documents.kept.find_grown(repository, self.request)
            held = found if found is not None and found.is_of(held) else held
        return Current(held, Outcome.MISS, document.fresh_until_ms, document)

    def _confirmed(self, old: Held, response: Confirmed, trace: Trace) -> Current[Held]:
        now_ms, before = self.documents.clock.now_ms(), old.document
        trace.add(StepKind.CONFIRMED, route=before.route, at_ms=now_ms, fetched_ms=before.fetched_ms)
        row = evolve(
            confirm(self.repository, before, now_ms, self.most_ttl_s),
            etag=response.etag,
            last_modified=response.last_modified,
            trace=trace.store(),
        )
        held = self.documents.kept.renew(self.repository, evolve(old, document=row))
        return Current(held, Outcome.CONFIRMED, row.fresh_until_ms, row)
