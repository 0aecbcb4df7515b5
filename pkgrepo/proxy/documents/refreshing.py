"""
Asks the routes of a proxy for a document, and makes of their answers the one that is served.

A document that a route does not have is made of others of that route, which are kept, and of files of it, if the
question has a composition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.errors import BlobMissing, PkgrepoError, UpstreamFailed
from pkgrepo.model import ReadLimits, Repository
from pkgrepo.proxy.configuration import proxy_config_of, routes_of
from pkgrepo.proxy.kept_states import (
    FAILURES,
    STALE_RETRY_MS,
    confirm,
    gone_until_ms,
    is_current,
    note_gone,
    state_of,
    ttl_ms,
)
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.search_order import SearchOrder
from pkgrepo.proxy.trace import StepKind, Trace, failed_step
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .asking import ABSENT, Asker, Confirmed, Question, Received
from .held import DocumentRequest, Held, Listing, UnstoredParts
from .kept_responses import KeptResponses
from .listings import Listings

T = TypeVar("T")

log = Logger()


class Answers(Protocol):
    """The responses of all upstreams, see L{pkgrepo.proxy.documents.freshness.Documents}."""

    async def answer(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """The present answer to a question."""

    async def read(self, repository: Repository, request: DocumentRequest, held: Held, work: Callable[..., T]) -> T:
        """The result of ``work``, which is called with the parts of a response."""


@frozen
class Unknown:
    """The outcome of asking when a route failed and there is no response from before."""

    failure: PkgrepoError
    steps: Sequence[Mapping[str, Any]]


@frozen(eq=False)
class _Refresh:
    """
    One question whose routes are asked, and the steps so far.

    ``before`` is the response from before, which is ``old`` if it has content, and its route still exists.
    """

    repository: Repository
    request: DocumentRequest
    before: Held | None
    old: Held | None
    trace: Trace

    @property
    def replaces(self) -> bool:
        """Whether a new response takes the place of one with content."""
        return self.before is not None and self.before.document.found

    @property
    def routes(self) -> Sequence[Route]:
        """The routes to ask, in order."""
        routes = routes_of(self.repository, self.request.package_key)
        return [each for each in routes if each.name == self.request.route] if self.request.route else routes

    def later(self, now_ms: int) -> int:
        """The time of a new content, later than that of the one before."""
        return now_ms if self.before is None else max(now_ms, self.before.document.fetched_ms + 1)


@define(eq=False)
class Refresher:
    """Asks the routes of all proxies for documents; ``answers`` are those to other questions."""

    _answers: Answers
    _kept: KeptResponses = field(kw_only=True)
    _asker: Asker = field(kw_only=True)
    _upstreams: Upstreams = field(kw_only=True)
    _clock: Clock = field(kw_only=True)
    _listings: Listings = field(kw_only=True)

    async def refresh(self, repository: Repository, request: DocumentRequest, before: Held | None) -> Held | Unknown:
        """
        Ask the routes in order, see L{pkgrepo.proxy.search_order}; the first that has it is chosen.

        An old response is used only if its route still exists.
        """
        old = before if before is not None and before.document.found else None
        if old is not None and not is_current(repository, old.document):
            old = None
        this = _Refresh(repository, request, before, old, Trace())
        if old is not None and old.named:
            return self._confirmed(this, old, Confirmed(old.document.etag, old.document.last_modified))
        order = SearchOrder(same=proxy_config_of(repository).replicas)
        for route in this.routes:
            mine = old if old is not None and old.document.route == route.name else None
            if order.only_known and mine is None:
                this.trace.add(StepKind.WITHHELD, route=route.name)
                continue
            try:
                response = await self._ask(this, route, mine)
            except FAILURES as error:
                this.trace.add(failed_step(error), route=route.name, at_ms=self._clock.now_ms(), why=str(error))
                order.fail(error, known=mine is not None)
                if order.ended:
                    break
                continue
            if isinstance(response, Received):
                return await self._settled(this, self._received(this, route, response))
            if response is not None:
                assert mine is not None, "a route confirms only its own answer"
                return self._confirmed(this, mine, response)
            this.trace.add(StepKind.ABSENT, route=route.name, at_ms=self._clock.now_ms())
        if order.failure is not None:
            return self._failed(this, order.failure)
        return self._gone(this) or await self._settled(this, self._absent(this))

    def _failed(self, this: _Refresh, failure: PkgrepoError) -> Held | Unknown:
        """What is used while routes fail: the response from before, if there is one."""
        before = this.before
        if before is not None:
            state = state_of(this.repository, before.document, self._clock.now_ms())
            if state.serves_after(failure, of_many=not this.request.owner):
                return self._stale(this, before, failure)
        return Unknown(failure, this.trace.store())

    async def _ask(self, this: _Refresh, route: Route, mine: Held | None) -> Confirmed | Received | None:
        """What a route has, or what is made of its other documents; ``mine`` is its own earlier response."""
        repository, request = this.repository, this.request

        async def open_previous() -> int | None:
            if this.before is not None and this.before.document.found:
                with suppress(BlobMissing):
                    return await self._kept.descriptor(repository, this.before)
            return None

        async def read_old(work: Callable[..., T]) -> T:
            assert this.before is not None, "an earlier answer is read"
            return await self._kept.read(repository, this.before, work)

        old = None if mine is None else mine.document
        question = Question(repository, route, request, old, open_previous, read_old)
        response = await self._asker.ask(question)
        if response is not None:
            return response
        if request.listing is not None and await self._is_listed(repository, route, request.listing, request.name):
            raise UpstreamFailed(route.name, f"its {request.listing.request.name} names {request.name}, which it lacks")
        if request.composition is None:
            return None
        sources = RouteSources(repository, route, self._answers, self._upstreams, mine, request.package_key)
        try:
            made = await self._asker.make(question, request.composition, sources)
            if made is None and sources.failure is not None:
                raise sources.failure.with_traceback(None)
            return made
        finally:
            this.trace.add(StepKind.ASKED, route=route.name, at_ms=self._clock.now_ms(), why=sources.asked)

    async def _is_listed(self, repository: Repository, route: Route, listing: Listing, name: str) -> bool:
        """Whether a route lists a document that it says it does not have. It is asked if a list is kept that does."""
        kept = await self._kept.find_grown(repository, listing.request)
        if kept is None or not kept.document.found or kept.document.route != route.name:
            return False
        if not await self._listings.lists(repository, listing, kept, name):
            return False
        present = await self._answers.answer(repository, listing.request, Trace(), revalidate=True)
        return present.document.found and await self._listings.lists(repository, listing, present, name)

    def _received(self, this: _Refresh, route: Route, response: Received) -> Held:
        """Serve a new response. What it is staged in is handed over to the task that stores it."""
        now_ms, before = self._clock.now_ms(), this.before
        this.trace.add(StepKind.FETCHED, route=route.name, at_ms=now_ms)
        document = UpstreamDocument(
            key=response.key,
            package_key=this.request.owner,
            route=route.name,
            url=response.url,
            etag=response.etag,
            last_modified=response.last_modified,
            source=response.source,
            sha256=response.parts.sha256,
            meta={"release": __version__, "address": route.url, **response.meta},
            trace=this.trace.store(),
            fetched_ms=this.later(now_ms),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + ttl_ms(this.repository, this.request.most_ttl_s),
        )
        held = Held(document, UnstoredParts(response.content), stored=False)
        if before is not None and response.key == this.request.tail_key:
            held = evolve(held, base=before.base or before)
        return self._kept.put(this.repository, held, response)

    async def _settled(self, this: _Refresh, held: Held) -> Held:
        """
        A new response; in the place of another one as it is stored, or as it is held if that fails.

        Files that are kept may be others now. All processes must know that before a client has the response.
        """
        if not this.replaces:
            return held
        with self._kept.without_delay():
            stored: Deferred[None] = Deferred()
            self._kept.when_stored(this.repository, held.document.key, lambda: stored.callback(None))
            await stored
        found = await self._kept.find_grown(this.repository, this.request)
        return found if found is not None and found.is_of(held) else held

    def _confirmed(self, this: _Refresh, old: Held, response: Confirmed) -> Held:
        now_ms, before = self._clock.now_ms(), old.document
        this.trace.add(StepKind.CONFIRMED, route=before.route, at_ms=now_ms, fetched_ms=before.fetched_ms)
        document = evolve(
            confirm(this.repository, before, now_ms, this.request.most_ttl_s),
            etag=response.etag,
            last_modified=response.last_modified,
            trace=this.trace.store(),
        )
        return self._kept.renew(this.repository, evolve(old, document=document, failure=None))

    def _gone(self, this: _Refresh) -> Held | None:
        """The response from before while it is served although no route has it any more; None if it is not."""
        old, key = this.old, this.request.package_key
        document = None if old is None else note_gone(this.repository, old.document, self._clock.now_ms(), key=key)
        if old is None or document is None:
            return None
        until_ms = gone_until_ms(this.repository, document)
        this.trace.add(StepKind.GONE, route=document.route, fetched_ms=document.fetched_ms, fresh_until_ms=until_ms)
        gone = evolve(old, document=evolve(document, trace=this.trace.store()), failure=None)
        return self._kept.renew(this.repository, gone)

    def _stale(self, this: _Refresh, before: Held, failure: PkgrepoError) -> Held:
        """Use the response from before for a while; one that there is no such package only for virtual repositories."""
        document, error, path = before.document, str(failure), this.repository.path
        if document.found:  # one line for each document; of an upstream that fails the log has one line
            log.debug("stale: {key} of {repository}: {error}", key=document.key, repository=path, error=error)
        this.trace.add(StepKind.STALE, route=document.route, at_ms=document.checked_ms, fetched_ms=document.fetched_ms)
        fresh_until_ms = self._clock.now_ms() + STALE_RETRY_MS
        document = evolve(document, fresh_until_ms=fresh_until_ms, trace=this.trace.store())
        return self._kept.hold(this.repository, before.outdated(document, failure))

    def _absent(self, this: _Refresh) -> Held:
        now_ms, before = self._clock.now_ms(), this.before
        document = UpstreamDocument(
            key=this.request.key,
            package_key=this.request.owner,
            trace=this.trace.store(),
            fetched_ms=this.later(now_ms),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + proxy_config_of(this.repository).negative_ttl_s * 1000,
        )
        held = Held(document, stored=False)
        if before is not None and before.stored and before.document.found:
            return self._kept.put_absent(this.repository, held)
        return self._kept.hold_absent(this.repository, held)


class RouteSources:
    """
    The other documents and files of a route, of which a document is made.

    ``before`` is the earlier response of the route to the question itself; the failures of a route count as those of
    the ``subject``, which is the package that the question is about.

    ``asked`` are the names of what was asked for, and how many files. ``failure`` is set if an old response was read,
    which may lack what the route has by now.
    """

    def __init__(
        self,
        repository: Repository,
        route: Route,
        answers: Answers,
        upstreams: Upstreams,
        before: Held | None,
        subject: str,
    ) -> None:
        self._repository = repository
        self._route = route
        self._answers = answers
        self._upstream = upstreams.of(repository.id, route)
        self._timeout_s = upstreams.document_timeout_s
        self._before = before
        self._subject = subject
        self.failure: PkgrepoError | None = None
        self._names: list[str] = []
        self._files = 0

    @property
    def asked(self) -> str:
        """What the route was asked for, as a list in words."""
        files = [f"{self._files} files"] if self._files > 1 else ["a file"] * self._files
        return ", ".join([*self._names, *files])

    async def read(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """The result of ``work``, which is called with the parts of another document; None if the route has none."""
        # The key of a question to one route differs from that of the same question to all.
        alone = len(proxy_config_of(self._repository).routes) == 1
        question = request if alone else request.of_route(self._route.name)
        self._names.append(request.name)
        held = await self._answers.answer(self._repository, question, Trace())
        self.failure = self.failure or held.failure
        if held.document.found:
            return await self._answers.read(self._repository, question, held, work)
        if held.failure is not None:
            raise held.missing(request.name)
        return None

    async def read_previous(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """The result of ``work`` with what was made for the question itself before; None if there is nothing."""
        if self._before is None:
            return None
        return await self._answers.read(self._repository, request, self._before, work)

    async def has(self, path: str) -> bool:
        """Whether the route has a file at a path below its URL, as far as it says so; it is not fetched."""
        self._names.append(path)
        async with self._upstream.open("HEAD", path, {}, subject=self._subject) as response:
            if response.status == 200:
                return True
            if response.status in ABSENT:
                return False
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")

    async def fetch(self, path: str, most: int) -> bytes | None:
        """A file at a path below the route's URL, of at most ``most`` bytes; None if the route has none."""
        self._files += 1
        limits = ReadLimits(most, self._timeout_s)
        async with self._upstream.open("GET", path, {}, limits=limits, subject=self._subject) as response:
            if response.status == 200:
                return await response.read()
            if response.status in ABSENT:
                return None
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")
