"""
Metadata of upstreams: asked, normalised, kept, and asked again when it is no longer fresh.

==========  ==============================================================  ===========================================
answer      meaning                                                         next
==========  ==============================================================  ===========================================
none        the question was not asked, or the answer was purged            all routes are asked, in order
fresh       an upstream said it within the repository's ``cache_ttl``       no upstream is asked
old         it is no longer fresh                                           the route that said it confirms or replaces
                                                                            it; a route that fails leaves it served
                                                                            (stale) for ``STALE_RETRY_MS``
absent      every route said that it does not have it                       like fresh and old, with ``negative_ttl``
==========  ==============================================================  ===========================================

A client is answered as soon as an answer is normalised; it is stored afterwards, and held in memory until then.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo import __version__
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, Invalid, NotFound, PkgrepoError, StorageFailed, StorageFull, UpstreamFailed
from pkgrepo.interfaces import ICatalog, IUpstreamResponse
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.catalog.packages import upstream_documents
from pkgrepo.storage.catalog.packages.upstream_documents import UpstreamDocument
from pkgrepo.storage.pools import Pools

from .configuration import proxy_config_of
from .counters import CacheCounters
from .held import DocumentRequest, Held, UnstoredParts
from .parts.file import PartsFile
from .parts.jobs import NormalisingFailed
from .parts.normalising import Normaliser, Outcome
from .parts.values import Context
from .routes import Route
from .trace import Trace
from .upstream.instances import Upstreams

STALE_RETRY_MS: Final = 10_000  # an old answer is served without asking for so long after a route has failed
REVALIDATE_MS: Final = 10_000  # a client may have an answer confirmed again so often
MOST_HELD: Final = 10_000  # answers in memory that are not stored as they are

# What may be better at the next attempt: until then, what an upstream said before is served.
FAILURES: Final = (UpstreamFailed, NormalisingFailed, StorageFull, StorageFailed)

log = Logger()


class Documents:
    """The answers of all upstreams of all proxy repositories, as this process serves them."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        publisher: Publisher,
        pools: Pools,
        clock: Clock,
        upstreams: Upstreams,
        normaliser: Normaliser,
        counters: CacheCounters,
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._publisher = publisher
        self._pools = pools
        self._clock = clock
        self._upstreams = upstreams
        self._normaliser = normaliser
        self._counters = counters
        self._held: OrderedDict[tuple[int, str], Held] = OrderedDict()
        self._flight: SingleFlight[tuple[int, str], Held] = SingleFlight()

    async def get(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """
        The present answer to a question; upstreams are asked if it is not fresh, once for all who wait.

        With ``revalidate`` a fresh answer is confirmed again, at most every ``REVALIDATE_MS``.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: an upstream failed, and there is no old answer
        """
        before = await self.find(repository, request.key)
        if before is None or not self._suffices(repository, before, revalidate=revalidate):
            held = await self._flight.run(
                (repository.id, request.key), lambda: self._refresh(repository, request, before)
            )
        else:
            held = before
            trace.add("cached", repository=repository.path, route=held.document.route or None)
        self._counters.add_answer(repository.id, before, held)
        trace.steps.extend(held.document.trace)
        if not held.document.found:
            raise NotFound("package", request.name)
        return held

    async def find(self, repository: Repository, key: str) -> Held | None:
        """The answer to a question as it is kept, fresh or not; None if there is none."""
        held = self._held.get((repository.id, key))
        document: UpstreamDocument | None = await self._catalog.look(
            upstream_documents.find_document, repository.id, key
        )
        if held is not None and (document is None or document.checked_ms <= held.document.checked_ms):
            return held
        return None if document is None else Held(document)

    async def refetch(self, repository: Repository, request: DocumentRequest) -> Held:
        """
        Ask again without an old answer, because the kept one is damaged.

        :raises NotFound, UpstreamFailed: see ``get``
        """
        self._held.pop((repository.id, request.key), None)
        held = await self._flight.run((repository.id, request.key), lambda: self._refresh(repository, request, None))
        if not held.document.found:
            raise NotFound("package", request.name)
        return held

    async def open(self, repository: Repository, held: Held) -> PartsFile:
        """
        The parts of an answer; the caller closes them.

        :raises BlobMissing: the storage has lost them; :raises PartsDamaged: they are damaged
        """
        return await self._pools.disk(PartsFile, await self._descriptor(repository, held))

    async def _descriptor(self, repository: Repository, held: Held) -> int:
        descriptor = None if held.unstored is None else held.unstored.duplicate()
        if descriptor is not None:
            return descriptor
        document: UpstreamDocument | None = held.document
        if held.unstored is not None:  # it was stored meanwhile
            document = await self._catalog.look(upstream_documents.find_document, repository.id, held.document.key)
        if document is None or not document.locator:
            raise BlobMissing(held.document.key)
        store = await self._stores.of(self._registry.storage(document.storage_id))
        descriptor = store.open(document.locator).descriptor()
        if descriptor is None:
            raise BlobMissing(document.locator)
        return descriptor

    async def forget(self, repository: Repository, before_ms: int, package_key: str | None = None) -> int:
        """Remove answers not confirmed since a time, only those about a package if it is given. Returns how many."""
        removed: int = await self._publisher.change(
            upstream_documents.remove_documents, repository, package_key, before_ms
        )
        for key in [key for key in self._held if key[0] == repository.id]:
            del self._held[key]
        return removed

    def _suffices(self, repository: Repository, held: Held, *, revalidate: bool) -> bool:
        document, now_ms = held.document, self._clock.now_ms()
        if now_ms >= document.fresh_until_ms or (revalidate and now_ms >= document.checked_ms + REVALIDATE_MS):
            return False
        return not document.found or self._route(repository, document.route) is not None

    def _route(self, repository: Repository, name: str) -> Route | None:
        return next((route for route in proxy_config_of(repository).routes if route.name == name), None)

    async def _refresh(self, repository: Repository, request: DocumentRequest, before: Held | None) -> Held:
        """Ask the routes in order; the first that has it wins. An old answer is used only if its route still exists."""
        config, trace = proxy_config_of(repository), Trace()
        old = before if before is not None and before.document.found else None
        if old is not None and self._route(repository, old.document.route) is None:
            old = None
        failure: PkgrepoError | None = None
        for route in config.routes:
            mine = old if old is not None and old.document.route == route.name else None
            try:
                held = await self._ask(repository, route, request, mine, before, trace)
            except FAILURES as error:
                trace.add("failed", route=route.name, at_ms=self._clock.now_ms(), why=str(error))
                failure = failure or error
                if mine is not None:
                    break  # what a route said before is better than what another one says
                continue
            if held is not None:
                return held
            trace.add("absent", route=route.name, at_ms=self._clock.now_ms())
        if failure is None:
            return self._absent(repository, request, before, trace)
        if old is None:
            raise failure
        log.debug(  # one for each document; of an upstream that fails the log has one line
            "stale: {key} of {repository}: {error}", key=request.key, repository=repository.path, error=str(failure)
        )
        trace.add("stale", route=old.document.route, fetched_ms=old.document.fetched_ms)
        document = evolve(old.document, fresh_until_ms=self._clock.now_ms() + STALE_RETRY_MS, trace=tuple(trace.steps))
        return self._hold(repository, evolve(old, document=document, stale=True))

    async def _ask(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        old: Held | None,
        before: Held | None,
        trace: Trace,
    ) -> Held | None:
        """The answer of a route; None if it does not have it. ``old`` is its answer before, which it may confirm."""
        upstream = self._upstreams.of(repository.id, route)
        for url in request.urls(route.url):
            headers = {"Accept": request.accept}
            if old is not None and _is_of_this_release(old):
                if old.document.etag:
                    headers["If-None-Match"] = old.document.etag
                if old.document.last_modified:
                    headers["If-Modified-Since"] = old.document.last_modified
            async with upstream.open("GET", url, headers, decode=True) as response:
                if response.status == 304 and old is not None:
                    return self._confirmed(repository, old, trace)
                if response.status in (404, 410):
                    continue
                if response.status != 200:
                    raise UpstreamFailed(route.name, f"it answered {response.status}")
                if not response.framed and "html" in (response.headers.get("content-type") or ""):
                    # JSON that was cut off does not parse, but a page lacks its last links only.
                    raise UpstreamFailed(route.name, "it sent a page of unknown length, which may be cut off")
                return await self._receive(repository, route, request, response, old, before, trace)
        return None

    async def _receive(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        response: IUpstreamResponse,
        old: Held | None,
        before: Held | None,
        trace: Trace,
    ) -> Held:
        """Normalise an answer. What it is staged in is handed over to the task that stores it."""
        etag, modified = response.headers.get("etag"), response.headers.get("last-modified")
        async with AsyncExitStack() as stack:
            staged = await stack.enter_async_context(self._publisher.stage(repository))
            outcome = await self._normalise(repository, route, request, response, staged, old, before)
            if outcome.parts is None:
                assert old is not None, "only a known answer is not normalised again"
                kept = evolve(old, document=evolve(old.document, etag=etag, last_modified=modified))
                return self._confirmed(repository, kept, trace)
            now_ms = self._clock.now_ms()
            trace.add("fetched", route=route.name, at_ms=now_ms)
            document = UpstreamDocument(
                key=request.key,
                package_key=request.package_key,
                route=route.name,
                url=response.url,
                etag=etag,
                last_modified=modified,
                source=outcome.sha256,
                meta={"release": __version__},
                trace=tuple(trace.steps),
                fetched_ms=_later(now_ms, before),
                checked_ms=now_ms,
                fresh_until_ms=now_ms + proxy_config_of(repository).ttl_s * 1000,
            )
            descriptor: int | None = staged.open(outcome.parts).descriptor()
            if descriptor is None:
                raise BlobMissing(request.key)
            held = Held(document, UnstoredParts(descriptor), stored=False)
            return self._put(repository, held, self._store(repository, held, stack.pop_all(), staged, outcome.parts))

    async def _normalise(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        response: IUpstreamResponse,
        staged: Staged,
        old: Held | None,
        before: Held | None,
    ) -> Outcome:
        previous: int | None = None
        if before is not None and before.document.found:
            with suppress(BlobMissing):
                previous = await self._descriptor(repository, before)
        context = Context(request.name, response.url, response.headers.get("content-type") or "")
        try:
            return await self._normaliser.run(
                response.chunks(),
                request.normaliser,
                context,
                staged,
                now_ms=self._clock.now_ms(),
                previous=previous,
                known_sha256=old.document.source if old is not None and _is_of_this_release(old) else None,
            )
        except Invalid as error:
            raise UpstreamFailed(route.name, f"it sent a document that cannot be used: {error}") from error
        finally:
            if previous is not None:
                os.close(previous)

    def _confirmed(self, repository: Repository, old: Held, trace: Trace) -> Held:
        now_ms = self._clock.now_ms()
        trace.add("confirmed", route=old.document.route, at_ms=now_ms, fetched_ms=old.document.fetched_ms)
        document = evolve(
            old.document,
            checked_ms=now_ms,
            fresh_until_ms=now_ms + proxy_config_of(repository).ttl_s * 1000,
            trace=tuple(trace.steps),
        )
        held = self._hold(repository, evolve(old, document=document, stale=False))
        if old.stored:
            renewal = self._publisher.change(upstream_documents.renew_document, repository, document)
            self._spawn(repository, held, renewal)
        return held

    def _absent(self, repository: Repository, request: DocumentRequest, before: Held | None, trace: Trace) -> Held:
        now_ms = self._clock.now_ms()
        document = UpstreamDocument(
            key=request.key,
            package_key=request.package_key,
            trace=tuple(trace.steps),
            fetched_ms=_later(now_ms, before),
            checked_ms=now_ms,
            fresh_until_ms=now_ms + proxy_config_of(repository).negative_ttl_s * 1000,
        )
        held = Held(document, stored=False)
        if before is not None and before.stored and before.document.found:
            change = self._publisher.change(upstream_documents.put_document, repository, document, None)
            return self._put(repository, held, change)
        return self._hold(repository, held)  # in memory only: anybody can ask for any number of names

    def _hold(self, repository: Repository, held: Held) -> Held:
        key = (repository.id, held.document.key)
        self._held[key] = held
        self._held.move_to_end(key)
        if len(self._held) > MOST_HELD:
            self._held.popitem(last=False)
        return held

    def _put(self, repository: Repository, held: Held, store: Coroutine[Any, Any, object]) -> Held:
        """Serve an answer from memory until ``store``, which begins now, has stored it."""
        self._hold(repository, held)
        self._spawn(repository, held, store)
        return held

    async def _store(
        self, repository: Repository, held: Held, stack: AsyncExitStack, staged: Staged, parts: BlobInfo
    ) -> None:
        async with stack:
            await self._publisher.change_with_blobs(
                upstream_documents.put_document, repository, staged, [parts], held.document, parts
            )

    def _spawn(self, repository: Repository, held: Held, work: Coroutine[Any, Any, object]) -> None:
        """Run ``work``, which stores an answer, in the background; then the answer is read from its row."""

        def done(result: object) -> None:
            if isinstance(result, Failure):
                # Upstreams are asked again: what cannot be stored is not held in memory for longer.
                key, path = held.document.key, repository.path
                if result.check(PkgrepoError):
                    reason = result.getErrorMessage()
                    log.info("{key} of {repository} was not stored: {reason}", key=key, repository=path, reason=reason)
                else:
                    log.failure("{key} of {repository} was not stored", result, key=key, repository=path)
            place = (repository.id, held.document.key)
            if self._held.get(place) is held:
                del self._held[place]
            if held.unstored is not None:
                held.unstored.close()

        Deferred.fromCoroutine(work).addBoth(done)


def _is_of_this_release(held: Held) -> bool:
    """Whether an answer was normalised by this release of the program; another one may do it differently."""
    return held.document.meta.get("release") == __version__


def _later(now_ms: int, before: Held | None) -> int:
    """The time of a new content, later than that of the one before."""
    return now_ms if before is None else max(now_ms, before.document.fetched_ms + 1)
