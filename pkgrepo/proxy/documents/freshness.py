"""
Metadata of upstreams: asked, normalised, kept, and asked again when it is no longer fresh.

What becomes of it is in L{pkgrepo.proxy.kept_states}. Of what a list names that is kept, too:

==========  ===================================================  =====================================================
document    meaning                                              next
==========  ===================================================  =====================================================
named       a fresh list of its upstream names these bytes       it is as confirmed
not named   that list came later, and names other bytes          it is old
==========  ===================================================  =====================================================

A client is answered as soon as a response is normalised; it is stored afterwards, and held in memory until then. An
answer that replaces another one is stored first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from attrs import evolve
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing
from pkgrepo.model import Repository
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.kept_states import is_current, state_of
from pkgrepo.proxy.leases import Turns
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.usage_counts import CacheCounts

from .asking import Asker
from .held import DocumentRequest, Held
from .kept_responses import KeptResponses
from .listings import Listings
from .refreshing import Refresher, Unknown

T = TypeVar("T")

log = Logger()


class Documents:
    """The responses of all upstreams of all proxy repositories, as this process serves them."""

    def __init__(
        self,
        *,
        kept: KeptResponses,
        asker: Asker,
        upstreams: Upstreams,
        clock: Clock,
        counters: CacheCounters,
        turns: Turns | None = None,
    ) -> None:
        self._kept = kept
        self._counters = counters
        self._turns = turns
        self._clock = clock
        self._listings = Listings(kept)
        self._refresher = Refresher(
            self, kept=kept, asker=asker, upstreams=upstreams, clock=clock, listings=self._listings
        )
        self._flight: SingleFlight[tuple[int, str], Held | Unknown] = SingleFlight()
        self._refetches: SingleFlight[tuple[int, str], Held | Unknown] = SingleFlight()

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
        changes = self._kept.changes
        first = held = await self._look(repository, request)
        cached = held is not None and self._suffices(repository, request, held, revalidate=revalidate)
        if held is None or not cached:
            refuse_proxy_loop(repository.id, repository.path)

            async def work(*, is_current: bool) -> Held | Unknown:
                if is_current and self._kept.changes == changes:
                    return await self._refresher.refresh(repository, request, first)
                # Another call may have ended since the look-up.
                before = await self._look(repository, request)
                if before is not None and self._suffices(repository, request, before, revalidate=revalidate):
                    return before
                return await self._refresher.refresh(repository, request, before)

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
        The result of ``work``, which is called on a thread with the parts of a response; those of its base are before.

        If they are lost or damaged, upstreams are asked again, and what they have now is read.

        :raises NotFound, UpstreamFailed: see ``get``
        """
        try:
            return await self._kept.read(repository, held, work)
        except (BlobMissing, PartsDamaged):
            log.warn("parts of {key} of {repository} are damaged", key=request.key, repository=repository.path)
        await self._kept.distrust(repository, held)
        place = (repository.id, request.key)
        outcome = await self._refetches.run(place, lambda: self._refresher.refresh(repository, request, None))
        if isinstance(outcome, Unknown):
            raise outcome.failure
        if not outcome.document.found:
            raise outcome.missing(request.name)
        return await self._kept.read(repository, outcome, work)

    async def read_kept(self, repository: Repository, held: Held, work: Callable[..., T]) -> T:
        """
        The result of ``work`` as that of ``read``, and no upstream is asked.

        :raises BlobMissing: the parts of the response are lost; :raises PartsDamaged: they are damaged
        """
        return await self._kept.read(repository, held, work)

    async def forget(self, repository: Repository, keys: Sequence[str]) -> None:
        """Forget answers: the next client makes upstreams be asked."""
        await self._kept.forget(repository, keys)

    async def find(self, repository: Repository, key: str) -> Held | None:
        """The answer to a question as it is kept, fresh or not; None if there is none."""
        return await self._kept.find(repository, key)

    async def find_served(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The response that clients have got last; None if there is none, or its route is there no more."""
        held = await self._kept.find_grown(repository, request)
        if held is None or not held.document.found or not is_current(repository, held.document):
            return None
        return held

    async def expire(self, repository: Repository, request: DocumentRequest, checked_ms: int) -> None:
        """Ask upstreams the next time, also for a list that names the document, unless that was done since a time."""
        for each in (request,) if request.listing is None else (request, request.listing.request):
            held = await self._kept.find_grown(repository, each)
            if held is not None and held.document.found and held.document.checked_ms <= checked_ms:
                self._kept.hold(repository, evolve(held, document=evolve(held.document, fresh_until_ms=0), named=None))

    async def _look(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The response that is kept, with what a list says of it."""
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
        document = held.document
        if not held.stale and held.named is False and document.checked_ms <= held.listed_ms:
            return False
        state = state_of(
            repository,
            document,
            self._clock.now_ms(),
            most_ttl_s=request.most_ttl_s,
            failed_until_ms=0 if held.failure is None else document.fresh_until_ms,
            revalidate=revalidate,
        )
        return state.suffices


def _count_use(before: Held | None, held: Held) -> CacheCounts:
    """What a request counts as that was answered with ``held``, where the response was ``before`` when it came."""
    if not held.document.found:
        return CacheCounts(absent=1)
    if held.stale:
        return CacheCounts(stale=1)
    if held is before:
        return CacheCounts(hits=1)
    if before is not None and held.is_of(before):
        return CacheCounts(confirmed=1)
    return CacheCounts(misses=1)
