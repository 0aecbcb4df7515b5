"""
Metadata of upstreams: asked, normalised, kept, and asked again when it is no longer fresh.

==========  ==============================================================  ===========================================
answer      meaning                                                         next
==========  ==============================================================  ===========================================
none        the question was not asked, or the answer was purged            all routes are asked, in order, or the one
                                                                            that the question is for
fresh       an upstream said it within the repository's ``cache_ttl``       no upstream is asked
old         it is no longer fresh                                           the route that said it confirms or replaces
                                                                            it; a route that fails leaves it served
                                                                            (stale) for ``STALE_RETRY_MS``
named       it is kept, and a fresh list of the upstream names these       fresh
            bytes
not named   that list came later, and names other bytes                     like old
absent      every route said that it does not have it                       like fresh and old, with ``negative_ttl``
==========  ==============================================================  ===========================================

A client is answered as soon as an answer is normalised; it is stored afterwards, and held in memory until then. An
answer that replaces another one is stored first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, PkgrepoError, StorageFailed, StorageFull, UpstreamDenied, UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.leases import Turns
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.trace import StepKind, Trace, failed_step
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route, refuse_proxy_loop
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage_counts import CacheCounts

from .asking import Asker, Confirmed, Received
from .composing import RouteSources
from .held import DocumentRequest, Held, Listing, UnstoredParts
from .kept_answers import KeptAnswers
from .listings import Listings

STALE_RETRY_MS: Final = 10_000  # an old answer is served without asking for so long after a route has failed
REVALIDATE_MS: Final = 10_000  # a client may have an answer confirmed again so often

# What may be better at the next attempt: until then, what an upstream said before is served.
FAILURES: Final = (UpstreamFailed, NormalisingFailed, StorageFull, StorageFailed)

T = TypeVar("T")

log = Logger()


@frozen
class Unknown:
    """The outcome of asking when a route failed and there is no answer from before."""

    failure: PkgrepoError
    steps: Sequence[Mapping[str, Any]]


class Documents:
    """The answers of all upstreams of all proxy repositories, as this process serves them."""

    def __init__(
        self,
        *,
        kept: KeptAnswers,
        asker: Asker,
        upstreams: Upstreams,
        clock: Clock,
        counters: CacheCounters,
        turns: Turns | None = None,
    ) -> None:
        self._kept = kept
        self._counters = counters
        self._asker = asker
        self._upstreams = upstreams
        self._turns = turns
        self._clock = clock
        self._listings = Listings(kept)
        self._flight: SingleFlight[tuple[int, str], Held | Unknown] = SingleFlight()
        self._refetches: SingleFlight[tuple[int, str], Held | Unknown] = SingleFlight()

    async def get(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """
        What upstreams have at present, see ``answer``.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: an upstream failed, and there is no old answer
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

        :raises UpstreamFailed: an upstream failed, and there is no old answer
        """
        changes = self._kept.changes
        first = held = await self._look(repository, request)
        cached = held is not None and self._suffices(repository, request, held, revalidate=revalidate)
        if held is None or not cached:
            refuse_proxy_loop(repository.id, repository.path)

            async def work(*, is_current: bool) -> Held | Unknown:
                if is_current and self._kept.changes == changes:
                    return await self._refresh(repository, request, first)
                # Another call may have ended since the look-up.
                before = await self._look(repository, request)
                if before is not None and self._suffices(repository, request, before, revalidate=revalidate):
                    return before
                return await self._refresh(repository, request, before)

            outcome = await self._flight.run(
                (repository.id, request.key), lambda: self._take_turns(repository, request, work)
            )
            if isinstance(outcome, Unknown):
                trace.recall(repository.path, outcome.steps)
                raise outcome.failure
            held = outcome
        self._counters.add(repository.id, _count_use(first, held))
        document = held.document
        trace.recall(repository.path, document.trace)
        if cached:
            trace.add(
                StepKind.CACHED,
                repository=repository.path,
                route=document.route,
                at_ms=document.checked_ms,
                fetched_ms=document.fetched_ms if document.found else None,
                fresh_until_ms=document.fresh_until_ms,
            )
        listed_ms = await self._listings.listed_ms(repository, request)
        return held if held.listed_ms == listed_ms else evolve(held, listed_ms=listed_ms)

    async def read(self, repository: Repository, request: DocumentRequest, held: Held, work: Callable[..., T]) -> T:
        """
        The result of ``work``, which is called on a thread with the parts of an answer; those of its base are before.

        If they are lost or damaged, upstreams are asked again, and what they have now is read.

        :raises NotFound, UpstreamFailed: see ``get``
        """
        try:
            return await self._kept.read(repository, held, work)
        except (BlobMissing, PartsDamaged):
            log.warn("parts of {key} of {repository} are damaged", key=request.key, repository=repository.path)
        await self._kept.distrust(repository, held)
        place = (repository.id, request.key)
        outcome = await self._refetches.run(place, lambda: self._refresh(repository, request, None))
        if isinstance(outcome, Unknown):
            raise outcome.failure
        if not outcome.document.found:
            raise outcome.missing(request.name)
        return await self._kept.read(repository, outcome, work)

    async def forget(self, repository: Repository, keys: Sequence[str]) -> None:
        """Forget answers: the next client makes upstreams be asked."""
        await self._kept.forget(repository, keys)

    async def find(self, repository: Repository, key: str) -> Held | None:
        """The answer to a question as it is kept, fresh or not; None if there is none."""
        return await self._kept.find(repository, key)

    async def find_served(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The answer that clients have got last; None if there is none, or its route is there no more."""
        held = await self._kept.find_grown(repository, request)
        if held is None or not held.document.found or not self._has_route(repository, held.document):
            return None
        return held

    async def expire(self, repository: Repository, request: DocumentRequest, checked_ms: int) -> None:
        """Ask upstreams the next time, also for a list that names the document, unless that was done since a time."""
        for each in (request,) if request.listing is None else (request, request.listing.request):
            held = await self._kept.find_grown(repository, each)
            if held is not None and held.document.found and held.document.checked_ms <= checked_ms:
                self._kept.hold(repository, evolve(held, document=evolve(held.document, fresh_until_ms=0), named=None))

    async def _look(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The answer that is kept, with what a list says of it."""
        held = await self._kept.find_grown(repository, request)
        if held is None or request.listing is None:
            return held
        return await self._listings.compare(repository, request, held, self._clock.now_ms())

    async def _take_turns(
        self, repository: Repository, request: DocumentRequest, work: Callable[..., Awaitable[Held | Unknown]]
    ) -> Held | Unknown:
        """What ``work`` returns, in one process at a time until it is stored: the others find it then."""
        if self._turns is None:
            return await work(is_current=True)
        turn = await self._turns.begin(repository.id, request.key)
        key = request.key
        try:
            # A commit of another process may have come between the look-up and the turn, also without a wait.
            outcome = await work(is_current=False)
            if isinstance(outcome, Held):
                key = outcome.document.key
            return outcome
        finally:
            self._kept.when_stored(repository, key, turn.end)

    def _suffices(self, repository: Repository, request: DocumentRequest, held: Held, *, revalidate: bool) -> bool:
        document, now_ms, config = held.document, self._clock.now_ms(), proxy_config_of(repository)
        if held.failure is None:
            if held.named is False and document.checked_ms <= held.listed_ms:
                return False
            # The configuration may have other times now.
            ttl_ms = _ttl_ms(repository, request) if document.found else 1000 * config.negative_ttl_s
            if now_ms >= document.checked_ms + (min(ttl_ms, REVALIDATE_MS) if revalidate else ttl_ms):
                return False
        if now_ms >= document.fresh_until_ms:
            return False
        return not document.found or self._has_route(repository, document)

    def _routes(self, repository: Repository, request: DocumentRequest) -> Sequence[Route]:
        routes = [each for each in proxy_config_of(repository).routes if each.serves(request.package_key)]
        return [each for each in routes if each.name == request.route] if request.route else routes

    def _has_route(self, repository: Repository, document: UpstreamDocument) -> bool:
        """Whether the route of an answer still exists, at the address from which the answer came."""
        routes = (each for each in proxy_config_of(repository).routes if each.name == document.route)
        return any(document.meta.get("address", each.url) == each.url for each in routes)

    async def _refresh(self, repository: Repository, request: DocumentRequest, before: Held | None) -> Held | Unknown:
        """
        Ask the routes in order; the first that has it wins. An old answer is used only if its route still exists.

        While a route fails, one after it is asked only if it has answered before, unless the routes are replicas: it
        could have a stranger's package under the name of the first one's.
        """
        trace = Trace()
        old = before if before is not None and before.document.found else None
        if old is not None and not self._has_route(repository, old.document):
            old = None
        if old is not None and old.named:
            confirmed = Confirmed(old.document.etag, old.document.last_modified)
            return self._confirmed(repository, request, old, confirmed, trace)
        failure: PkgrepoError | None = None
        replicas = proxy_config_of(repository).replicas
        for route in self._routes(repository, request):
            mine = old if old is not None and old.document.route == route.name else None
            if failure is not None and mine is None and not replicas:
                trace.add(StepKind.WITHHELD, route=route.name)
                continue
            try:
                answer = await self._ask(repository, route, request, mine, before, trace)
            except FAILURES as error:
                trace.add(failed_step(error), route=route.name, at_ms=self._clock.now_ms(), why=str(error))
                is_decision = isinstance(error, UpstreamDenied)
                failure = error if is_decision else failure or error
                if is_decision or mine is not None:
                    break  # what a route said before is better than what another one says
                continue
            if isinstance(answer, Received):
                held = self._received(repository, route, request, answer, before, trace)
                replaces = before is not None and before.document.found
                return await self._stored(repository, request, held) if replaces else held
            if answer is not None:
                assert mine is not None, "a route confirms only its own answer"
                return self._confirmed(repository, request, mine, answer, trace)
            trace.add(StepKind.ABSENT, route=route.name, at_ms=self._clock.now_ms())
        if failure is None:
            absent = self._absent(repository, request, before, trace)
            replaces = before is not None and before.document.found
            return await self._stored(repository, request, absent) if replaces else absent
        return self._failed(repository, request, before, old, failure, trace)

    def _failed(
        self,
        repository: Repository,
        request: DocumentRequest,
        before: Held | None,
        old: Held | None,
        failure: PkgrepoError,
        trace: Trace,
    ) -> Held | Unknown:
        """What is used while routes fail: an old answer, if there is one."""
        # What an upstream refuses of one package is not served from before; a list of many is, as after other failures.
        is_refused = isinstance(failure, UpstreamDenied) and bool(request.owner)
        if not is_refused and before is not None and (old is not None or not before.document.found):
            return self._stale(repository, before, failure, trace)
        return Unknown(failure, trace.store())

    async def _ask(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        mine: Held | None,
        before: Held | None,
        trace: Trace,
    ) -> Confirmed | Received | None:
        """What a route has, or what is made of its other documents; ``mine`` is its own earlier answer."""
        old = None if mine is None else mine.document

        async def open_previous() -> int | None:
            return await self._open_previous(repository, before)

        answer = await self._asker.ask(
            repository,
            route,
            request,
            old=old,
            open_previous=open_previous,
            read_old=lambda work: self._read_old(repository, before, work),
        )
        if answer is not None:
            return answer
        if request.listing is not None and await self._is_listed(repository, route, request.listing, request.name):
            raise UpstreamFailed(route.name, f"its {request.listing.request.name} names {request.name}, which it lacks")
        if request.composition is None:
            return None
        sources = RouteSources(repository, route, self, self._upstreams, mine, request.package_key)
        try:
            made = await self._asker.make(
                repository,
                route,
                request,
                request.composition,
                sources=sources,
                old=old,
                open_previous=open_previous,
            )
            if made is None and sources.failure is not None:
                raise sources.failure.with_traceback(None)
            return made
        finally:
            trace.add(StepKind.ASKED, route=route.name, at_ms=self._clock.now_ms(), why=sources.asked)

    async def _is_listed(self, repository: Repository, route: Route, listing: Listing, name: str) -> bool:
        """Whether a route lists a document that it says it does not have. It is asked if a list is kept that does."""
        kept = await self._kept.find_grown(repository, listing.request)
        if kept is None or not kept.document.found or kept.document.route != route.name:
            return False
        if not await self._listings.lists(repository, listing, kept, name):
            return False
        present = await self.answer(repository, listing.request, Trace(), revalidate=True)
        return present.document.found and await self._listings.lists(repository, listing, present, name)

    async def _read_old(self, repository: Repository, before: Held | None, work: Callable[..., T]) -> T:
        assert before is not None, "an earlier answer is read"
        return await self._kept.read(repository, before, work)

    async def _open_previous(self, repository: Repository, before: Held | None) -> int | None:
        if before is not None and before.document.found:
            with suppress(BlobMissing):
                return await self._kept.descriptor(repository, before)
        return None

    def _received(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        answer: Received,
        before: Held | None,
        trace: Trace,
    ) -> Held:
        """Serve a new answer. What it is staged in is handed over to the task that stores it."""
        now_ms = self._clock.now_ms()
        trace.add(StepKind.FETCHED, route=route.name, at_ms=now_ms)
        document = UpstreamDocument(
            key=answer.key,
            package_key=request.owner,
            route=route.name,
            url=answer.url,
            etag=answer.etag,
            last_modified=answer.last_modified,
            source=answer.source,
            sha256=answer.parts.sha256,
            meta={"release": __version__, "address": route.url, **answer.meta},
            trace=trace.store(),
            fetched_ms=_later(now_ms, before),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + _ttl_ms(repository, request),
        )
        held = Held(document, UnstoredParts(answer.content), stored=False)
        if before is not None and answer.key == request.tail_key:
            held = evolve(held, base=before.base or before)
        return self._kept.put(repository, held, answer)

    async def _stored(self, repository: Repository, request: DocumentRequest, held: Held) -> Held:
        """
        A new answer as it is stored, or as it is held if that fails.

        Files that are kept may be others now. All processes must know that before a client has the answer.
        """
        with self._kept.hurrying():
            stored: Deferred[None] = Deferred()
            self._kept.when_stored(repository, held.document.key, lambda: stored.callback(None))
            await stored
        found = await self._kept.find_grown(repository, request)
        return found if found is not None and found.is_of(held) else held

    def _confirmed(
        self, repository: Repository, request: DocumentRequest, old: Held, answer: Confirmed, trace: Trace
    ) -> Held:
        now_ms, before = self._clock.now_ms(), old.document
        trace.add(StepKind.CONFIRMED, route=before.route, at_ms=now_ms, fetched_ms=before.fetched_ms)
        document = evolve(
            before,
            etag=answer.etag,
            last_modified=answer.last_modified,
            checked_ms=now_ms,
            fresh_until_ms=now_ms + _ttl_ms(repository, request),
            trace=trace.store(),
        )
        return self._kept.renew(repository, evolve(old, document=document, failure=None))

    def _stale(self, repository: Repository, before: Held, failure: PkgrepoError, trace: Trace) -> Held:
        """Use the answer from before for a while; one that there is no such package only for virtual repositories."""
        document, error = before.document, str(failure)
        if document.found:  # one line for each document; of an upstream that fails the log has one line
            log.debug(
                "stale: {key} of {repository}: {error}", key=document.key, repository=repository.path, error=error
            )
        trace.add(StepKind.STALE, route=document.route, at_ms=document.checked_ms, fetched_ms=document.fetched_ms)
        fresh_until_ms = self._clock.now_ms() + STALE_RETRY_MS
        document = evolve(document, fresh_until_ms=fresh_until_ms, trace=trace.store())
        return self._kept.hold(repository, before.outdated(document, failure))

    def _absent(self, repository: Repository, request: DocumentRequest, before: Held | None, trace: Trace) -> Held:
        now_ms = self._clock.now_ms()
        document = UpstreamDocument(
            key=request.key,
            package_key=request.owner,
            trace=trace.store(),
            fetched_ms=_later(now_ms, before),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + proxy_config_of(repository).negative_ttl_s * 1000,
        )
        held = Held(document, stored=False)
        if before is not None and before.stored and before.document.found:
            return self._kept.put_absent(repository, held)
        return self._kept.hold_absent(repository, held)


def _count_use(before: Held | None, held: Held) -> CacheCounts:
    """What a request counts as that was answered with ``held``, where the answer was ``before`` when it came."""
    if not held.document.found:
        return CacheCounts(absent=1)
    if held.stale:
        return CacheCounts(stale=1)
    if held is before:
        return CacheCounts(hits=1)
    if before is not None and held.is_of(before):
        return CacheCounts(confirmed=1)
    return CacheCounts(misses=1)


def _ttl_ms(repository: Repository, request: DocumentRequest) -> int:
    """For how long an answer is fresh."""
    ttl_s = proxy_config_of(repository).ttl_s
    return 1000 * (ttl_s if request.most_ttl_s is None else min(ttl_s, request.most_ttl_s))


def _later(now_ms: int, before: Held | None) -> int:
    """The time of a new content, later than that of the one before."""
    return now_ms if before is None else max(now_ms, before.document.fetched_ms + 1)
