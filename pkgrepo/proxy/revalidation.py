"""
What is kept of upstreams beside the documents of packages: served, or asked for again, by the table of ``kept_states``.

Tags and lists of images, and files that may change, are each a L{Cached}: how it is found, asked for and kept. What no
upstream has is in L{NegativeCache}, which routes failed in memory here, and what no route has any more in the row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from attrs import define, evolve, field, frozen
from twisted.logger import Logger

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.model import Repository
from pkgrepo.proxy.counters import CacheCounters
from pkgrepo.proxy.kept_states import (
    FAILURES,
    STALE_RETRY_MS,
    KeptState,
    fresh_until_ms,
    gone_until_ms,
    note_gone,
    state_of,
)
from pkgrepo.proxy.remembered import NegativeCache
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage_counts import CacheCounts

MOST_STALE: Final = 10_000  # whose routes fail, in memory

T = TypeVar("T")
C = TypeVar("C")
log = Logger()


class Outcome(Enum):
    """How something was found: kept, fetched just now, kept and confirmed just now, or kept while upstreams fail."""

    HIT = CacheCounts()  # counted as a download, see L{CacheCounters}
    MISS = CacheCounts(misses=1)
    CONFIRMED = CacheCounts(confirmed=1)
    STALE = CacheCounts(stale=1)


@frozen
class Kept(Generic[C]):
    """What is kept, its row, its state, and until when it is served without asking (ms)."""

    content: C | None
    row: UpstreamDocument | None
    state: KeptState
    until_ms: int


@frozen
class Current(Generic[C]):
    """What is served, until when without asking (ms; 0 for ever), and how it was found."""

    content: C
    outcome: Outcome
    until_ms: int = 0
    row: UpstreamDocument | None = None

    @property
    def stale(self) -> bool:
        """Whether upstreams failed, or do not have it any more."""
        return self.outcome is Outcome.STALE

    @property
    def ends_s(self) -> int:
        """Until when it is served without asking, in Unix seconds; 0 for ever."""
        return self.until_ms // 1000


class Cached(Protocol[C]):
    """
    Something that a proxy keeps under a ``key``: ``what`` it is, and the ``package`` that it belongs to.

    ``most_ttl_s`` and ``gone_s`` are those of L{state_of}. ``step`` has fields of the steps about it.
    """

    @property
    def repository(self) -> Repository:
        """The proxy."""

    @property
    def key(self) -> str:
        """The key of its row."""

    @property
    def package(self) -> str:
        """The key of its package; empty if it belongs to none."""

    @property
    def what(self) -> str:
        """What it is, for messages."""

    @property
    def most_ttl_s(self) -> int | None:
        """For how many seconds it is fresh at most."""

    @property
    def gone_s(self) -> int:
        """For how many seconds it is served after upstreams have removed it, where the repository does not say that."""

    async def find(self) -> tuple[C | None, UpstreamDocument | None]:
        """What is kept, and its row."""

    async def ask(self, kept: Kept[C], trace: Trace) -> Current[Any]:
        """
        What upstreams have, after it was kept. :raises NotFound: all say that they have nothing

        :raises UpstreamFailed: that is not known
        """

    async def renew(self, content: C, row: UpstreamDocument) -> None:
        """Store the row of what stays as it is."""

    async def drop(self) -> None:
        """Remove what is kept."""

    def step(self, content: C) -> Mapping[str, str]:
        """Fields of a step about it."""


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


@define(eq=False, kw_only=True)
class Revalidation:
    """Decides what is served of all that is L{Cached}."""

    _clock: Clock
    _negative_cache: NegativeCache
    _counters: CacheCounters
    _in_flight: TracedRequests[Any] = field(factory=TracedRequests, init=False)
    _stale_until_ms: Lru[tuple[int, str], int] = field(factory=lambda: Lru(MOST_STALE), init=False)

    async def get(self, cached: Cached[C], trace: Trace, *, revalidate: bool = False) -> Current[C]:
        """
        What is served; upstreams are asked if what is kept does not suffice, once for all who wait.

        With ``revalidate`` it is confirmed again.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known, and nothing is kept
        """
        kept = await self.look(cached, revalidate=revalidate)
        if kept.content is not None and kept.state.suffices:
            recall(trace, cached.repository, kept)
            return as_kept(kept, kept.content)
        self.check_absent(cached, kept, trace)
        work = partial(self._ask, cached, kept)
        return await self._counting(cached, self._in_flight.run(cached.repository, cached.key, work, trace))

    async def look(self, cached: Cached[C], *, revalidate: bool = False) -> Kept[C]:
        """What is kept, and its state."""
        content, row = await cached.find()
        repository, ttl_s, gone_s = cached.repository, cached.most_ttl_s, cached.gone_s
        failed_ms = self._stale_until_ms.get((repository.id, cached.key)) or 0
        state = state_of(
            repository,
            row,
            self._clock.now_ms(),
            most_ttl_s=ttl_s,
            gone_s=gone_s,
            failed_until_ms=failed_ms,
            revalidate=revalidate,
        )
        if content is None:
            state = KeptState.NONE
        elif state is KeptState.NONE:
            state = KeptState.OLD  # it is not known when it came
        until_ms = 0 if row is None else fresh_until_ms(repository, row, ttl_s)
        return Kept(content, row, state, failed_ms if state is KeptState.STALE else until_ms)

    def check_absent(self, cached: Cached[C], kept: Kept[C], trace: Trace) -> None:
        """:raises NotFound: nothing is kept, and no upstream had it a short while ago"""
        if kept.content is None:
            try:
                self._negative_cache.check(cached.repository, cached.key, trace, what=cached.what)
            except NotFound:
                self._counters.add(cached.repository.id, CacheCounts(absent=1))
                raise

    async def ask(self, cached: Cached[C], kept: Kept[C], trace: Trace) -> Current[Any]:
        """The same as ``get`` for something whose requests are shared otherwise, and that does not suffice."""
        own = Trace()
        try:
            return await self._counting(cached, self._ask(cached, kept, own))
        finally:
            trace.join(own)

    async def _ask(self, cached: Cached[C], kept: Kept[C], trace: Trace) -> Current[Any]:
        repository, place = cached.repository, (cached.repository.id, cached.key)
        try:
            found = await cached.ask(kept, trace)
        except NotFound:
            gone = None if kept.content is None else await self._keep_gone(cached, kept, kept.content, trace)
            if gone is not None:
                return gone
            if kept.content is not None:
                await cached.drop()
            self._negative_cache.note(repository, cached.key, trace)
            raise
        except FAILURES as error:
            if kept.content is None or not kept.state.serves_after(error):
                raise
            log.debug("stale: {key} of {path}: {error}", key=cached.key, path=repository.path, error=str(error))
            _note_stale(trace, repository, kept.row)
            until_ms = self._clock.now_ms() + STALE_RETRY_MS
            self._stale_until_ms.put(place, until_ms)
            return Current(kept.content, Outcome.STALE, until_ms, kept.row)
        self._stale_until_ms.pop(place)
        return found

    async def _keep_gone(self, cached: Cached[C], kept: Kept[C], content: C, trace: Trace) -> Current[C] | None:
        """What is kept while it is served although no route has it any more; None if it is not."""
        repository, now_ms = cached.repository, self._clock.now_ms()
        before = kept.row or UpstreamDocument(
            key=cached.key, package_key=cached.package, fetched_ms=now_ms, checked_ms=now_ms, fresh_until_ms=now_ms
        )
        row = None
        if kept.state is not KeptState.FORMER:
            row = note_gone(repository, before, now_ms, key=cached.package, gone_s=cached.gone_s)
        if row is None:
            return None
        until_ms = gone_until_ms(repository, row, cached.gone_s)
        trace.add(StepKind.GONE, fresh_until_ms=until_ms, **cached.step(content))
        row = evolve(row, trace=trace.store())
        await cached.renew(content, row)
        self._stale_until_ms.pop((repository.id, cached.key))
        return Current(content, Outcome.STALE, row.fresh_until_ms, row)

    async def _counting(self, cached: Cached[Any], asked: Awaitable[Current[Any]]) -> Current[Any]:
        try:
            found = await asked
        except NotFound:
            self._counters.add(cached.repository.id, CacheCounts(absent=1))
            raise
        self._counters.add(cached.repository.id, found.outcome.value)
        return found


def as_kept(kept: Kept[C], content: C) -> Current[C]:
    """What is kept, as it is served without asking."""
    return Current(content, Outcome.HIT if kept.state is KeptState.FRESH else Outcome.STALE, kept.until_ms, kept.row)


def times_of(row: UpstreamDocument) -> dict[str, Any]:
    """Fields of a step: which route gave a kept response, and when."""
    return {"route": row.route, "at_ms": row.checked_ms, "fetched_ms": row.fetched_ms}


def recall(trace: Trace, repository: Repository, kept: Kept[Any]) -> None:
    """Add the steps that led to what is kept, and that it is used."""
    row = kept.row
    if row is None or kept.state is KeptState.STALE:
        _note_stale(trace, repository, row)
        return
    trace.recall(repository.path, row.trace)
    trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=kept.until_ms, **times_of(row))


def _note_stale(trace: Trace, repository: Repository, row: UpstreamDocument | None) -> None:
    if row is not None:
        trace.add(StepKind.STALE, repository=repository.path, **times_of(row))
