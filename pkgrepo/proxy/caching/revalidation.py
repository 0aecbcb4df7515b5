"""
What is kept of upstreams is served, or asked for again, by the table of ``states``.

Documents, tags, lists, and files that may change are each a L{Cached}: how it is found, asked for and kept. The rest is
the same for all:

=====================  ===============================================================================================
step                   what is done
=====================  ===============================================================================================
look                   what is kept is found, or that no upstream had it; if that suffices, it is served
wait                   for the same question in this process, and, for documents, in others (``begin``): then the first
                       step again
ask                    the routes in their order (L{pkgrepo.proxy.caching.search_order}), or a transfer that does so
they have it           it is kept and served
none has it            it is served as gone for a while, or removed (``drop``), which all processes are told; what
                       another process stored meanwhile stays, and is served
they fail              what is kept is served as stale, and none is asked for some seconds, by this process
=====================  ===============================================================================================

Each way adds steps to the trace. Those that led to a response are kept with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from attrs import define, evolve, field, frozen
from twisted.logger import Logger

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.states import (
    AHEAD_MS,
    FAILURES,
    STALE_RETRY_MS,
    KeptState,
    NegativeCache,
    absence,
    fresh_until_ms,
    gone_until_ms,
    note_gone,
    state_of,
)
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage_counts import CacheCounts

MOST_STALE: Final = 10_000  # whose routes fail, in memory

C = TypeVar("C")
log = Logger()


class Outcome(Enum):
    """
    How something was found, and what that counts as.

    It is kept, fetched just now, kept and confirmed just now, or kept while upstreams fail or do not have it any more;
    or no upstream has it.
    """

    HIT = CacheCounts(hits=1)
    MISS = CacheCounts(misses=1)
    CONFIRMED = CacheCounts(confirmed=1)
    STALE = CacheCounts(stale=1)
    ABSENT = CacheCounts(absent=1)


@frozen
class Failed:
    """
    How routes failed when what is kept was asked for again, with the steps.

    Until ``until_ms`` they are not asked, unless another process has asked since: then the time ``checked_ms`` of the
    row has changed.
    """

    checked_ms: int
    until_ms: int
    error: PkgrepoError
    steps: Sequence[Mapping[str, Any]]


@define  # a frozen one takes three times as long to make, for each read
class Kept(Generic[C]):
    """
    What is kept, its row, its state, and until when it is served without asking (ms).

    Without content the row says that no upstream has it, or there is none.
    """

    content: C | None
    row: UpstreamDocument | None
    state: KeptState
    until_ms: int = 0
    failed: Failed | None = None


@define
class Current(Generic[C]):
    """
    What is served, until when without asking (ms; 0 for ever), and how it was found. The content is None if it is
    ABSENT; then there is a ``failure`` if that is not known for sure.
    """

    content: C
    outcome: Outcome
    until_ms: int = 0
    row: UpstreamDocument | None = None
    failure: PkgrepoError | None = None

    @property
    def stale(self) -> bool:
        """Whether upstreams failed, or do not have it any more."""
        return self.outcome is Outcome.STALE

    @property
    def ends_s(self) -> int:
        """Until when it is served without asking, in Unix seconds; 0 for ever."""
        return self.until_ms // 1000


@define(eq=False, kw_only=True)
class Cached(ABC, Generic[C]):
    """
    Something that a proxy keeps under a ``key``: ``what`` it is, its ``name``, and the ``package`` it belongs to.

    ``most_ttl_s`` and ``gone_s`` are those of L{state_of}; ``of_many`` is that of L{KeptState.serves_after}. What is
    ``settled`` is fresh for ever once it is kept. If it is
    not ``shared``, those who ask for it share the requests by themselves. What has no content when it is asked for has
    neither ``renew`` nor ``drop``. With ``lasting_absences`` it is served that no upstream has it, while routes fail.
    Without ``counts_hits`` what is served as it is kept counts as a download, see L{CacheCounters}.
    """

    what: ClassVar[str] = "file"
    shared: ClassVar[bool] = True
    lasting_absences: ClassVar[bool] = False
    counts_hits: ClassVar[bool] = False

    repository: Repository
    key: str
    name: str
    package: str = ""
    most_ttl_s: int | None = None
    gone_s: int = 0
    of_many: bool = False
    settled: bool = False

    @abstractmethod
    async def find(self) -> tuple[C | None, UpstreamDocument | None]:
        """What is kept, and its row."""

    @abstractmethod
    async def ask(self, kept: Kept[C], trace: Trace) -> Current[Any]:
        """
        What upstreams have, after it was kept. :raises NotFound: all say that they have nothing

        :raises UpstreamFailed: that is not known
        """

    async def renew(self, content: C, row: UpstreamDocument) -> C:
        """Store the row of what stays as it is. Returns the content with it."""
        raise NotImplementedError

    async def drop(self, absence: UpstreamDocument, before_ms: int) -> None:
        """
        Remove what is kept. The row that says that no upstream has it may be stored.

        What was confirmed at ``before_ms`` or later stays: another process stored it meanwhile.
        """
        raise NotImplementedError

    async def begin(self) -> Callable[[Any], None] | None:
        """Wait for the turn of this process. Returns what ends it, with the result of ``ask``; None: there are none."""
        return None

    def step(self, content: C) -> Mapping[str, Any]:  # noqa: ARG002 - for others
        """Fields of a step about it."""
        return {}


_Ended = tuple[Current[Any] | None, PkgrepoError | None, Sequence[Mapping[str, Any]]]


@define(eq=False, kw_only=True)
class Revalidation:
    """Decides what is served of all that is L{Cached}."""

    _clock: Clock
    _negative_cache: NegativeCache
    _counters: CacheCounters
    _in_flight: SingleFlight[tuple[int, str], _Ended] = field(factory=SingleFlight, init=False)
    _failed: Lru[tuple[int, str], Failed] = field(factory=lambda: Lru(MOST_STALE), init=False)
    _asked: int = field(default=0, init=False)  # how often upstreams were asked

    async def get(self, cached: Cached[C], trace: Trace, *, revalidate: bool = False) -> Current[C]:
        """
        What is served, see ``find``.

        :raises NotFound: no upstream has it; :raises UpstreamFailed: that is not known, and nothing is kept
        """
        found = await self.find(cached, trace, revalidate=revalidate)
        if found.outcome is not Outcome.ABSENT:
            return found
        raise NotFound(cached.what, cached.name) if found.failure is None else found.failure.with_traceback(None)

    async def find(self, cached: Cached[C], trace: Trace, *, revalidate: bool = False) -> Current[C]:
        """
        What is served, or that no upstream has it; they are asked if that does not suffice, once for all who wait.

        With ``revalidate`` it is confirmed again.

        :raises UpstreamFailed: that is not known, and nothing is kept
        """
        asked = self._asked
        kept = await self.look(cached, revalidate=revalidate)
        if kept.state.suffices:
            found = _as_kept(cached, kept, trace)
        else:
            work = partial(self._look_and_ask, cached, kept, asked, revalidate)
            found = await self._run(cached, cached.key, work, trace)
        if found.outcome is not Outcome.HIT or cached.counts_hits:
            self._counters.add(cached.repository.id, found.outcome.value)
        return found

    async def look(self, cached: Cached[C], *, revalidate: bool = False) -> Kept[C]:
        """What is kept, and its state."""
        content, row = await cached.find()
        repository, place = cached.repository, (cached.repository.id, cached.key)
        absent = self._negative_cache.find(*place)
        if absent is not None and (content is None if row is None else row.checked_ms < absent.checked_ms):
            content, row = None, absent
        failed, now_ms = self._failed.get(place), self._clock.now_ms()
        if failed is not None and (
            failed.checked_ms != _checked_ms(row) or failed.until_ms > now_ms + STALE_RETRY_MS + AHEAD_MS
        ):
            failed = None
        state = state_of(
            repository,
            row,
            now_ms,
            most_ttl_s=cached.most_ttl_s,
            gone_s=cached.gone_s,
            failed_until_ms=0 if failed is None else failed.until_ms,
            revalidate=revalidate,
        )
        if content is not None and state is KeptState.NONE:
            state = KeptState.OLD  # it is not known when it came
        if content is None and (row is None or row.found or not (state.suffices or cached.lasting_absences)):
            state = KeptState.NONE
        if cached.settled and content is not None and state is not KeptState.FORMER:
            return Kept(content, row, KeptState.FRESH)
        if failed is not None and state is KeptState.STALE:
            return Kept(content, row, state, failed.until_ms, failed)
        return Kept(content, row, state, 0 if row is None else fresh_until_ms(repository, row, cached.most_ttl_s))

    async def ask_anew(self, cached: Cached[C], trace: Trace) -> Current[C]:
        """What upstreams have, or that they do not have it, as if nothing were kept: that is damaged."""
        nothing: Kept[C] = Kept(None, None, KeptState.NONE)
        return await self._run(cached, f"anew {cached.key}", partial(self._ask, cached, nothing), trace)

    def expire(self, cached: Cached[Any]) -> None:
        """Have the routes asked again, also if they failed a short while ago."""
        self._failed.pop((cached.repository.id, cached.key))

    async def _run(
        self, cached: Cached[C], key: str, work: Callable[[Trace], Awaitable[Current[C]]], trace: Trace
    ) -> Current[C]:
        """What ``work`` returns or raises; all who wait for it get the steps that it adds to its trace."""

        async def traced() -> _Ended:
            own = Trace()
            try:
                return await work(own), None, own.store()
            except PkgrepoError as error:
                return None, error, own.store()

        repository = cached.repository
        refuse_proxy_loop(repository.id, repository.path)
        found, failure, steps = await (self._in_flight.run((repository.id, key), traced) if cached.shared else traced())
        trace.recall(repository.path, steps)
        if found is None:
            assert failure is not None, "there is a result or an error"
            raise failure.with_traceback(None)
        return found

    async def _look_and_ask(
        self, cached: Cached[C], kept: Kept[C], asked: int, revalidate: bool, trace: Trace
    ) -> Current[C]:
        """Ask in turn; ``asked`` is the number of questions from before ``kept`` was found."""
        end, found = await cached.begin(), None
        try:
            if end is not None or self._asked != asked:
                kept = await self.look(cached, revalidate=revalidate)
            found = _as_kept(cached, kept, trace) if kept.state.suffices else await self._ask(cached, kept, trace)
            return found
        finally:
            if end is not None:
                end(found)

    async def _ask(self, cached: Cached[C], kept: Kept[C], trace: Trace) -> Current[C]:
        asked_ms = self._clock.now_ms()
        try:
            found = await cached.ask(kept, trace)
        except NotFound:
            found = await self._keep_gone(cached, kept, trace) or await self._keep_absent(cached, kept, trace, asked_ms)
        except FAILURES as error:
            if not kept.state.serves_after(error, of_many=cached.of_many):
                raise
            return self._keep_stale(cached, kept, error, trace)
        finally:
            self._asked += 1
        self._failed.pop((cached.repository.id, cached.key))
        return found

    def _keep_stale(self, cached: Cached[C], kept: Kept[C], error: PkgrepoError, trace: Trace) -> Current[Any]:
        """What is kept, while routes fail."""
        repository, row = cached.repository, kept.row
        # one line for each; of an upstream that fails the log has one line
        log.debug("stale: {key} of {path}: {error}", key=cached.key, path=repository.path, error=str(error))
        if row is not None:
            trace.add(StepKind.STALE, repository=repository.path, **times_of(row))
        error.__traceback__ = error.__cause__ = error.__context__ = None  # frames, which would stay in memory
        failed = Failed(_checked_ms(row), self._clock.now_ms() + STALE_RETRY_MS, error, trace.store())
        self._failed.put((repository.id, cached.key), failed)
        return _served(kept.content, Outcome.STALE, failed.until_ms, row, error)

    async def _keep_gone(self, cached: Cached[C], kept: Kept[C], trace: Trace) -> Current[C] | None:
        """What is kept while it is served although no route has it any more; None if it is not."""
        if kept.content is None or kept.state is KeptState.FORMER:
            return None
        repository, now_ms = cached.repository, self._clock.now_ms()
        before = kept.row or UpstreamDocument(
            key=cached.key, package_key=cached.package, fetched_ms=now_ms, checked_ms=now_ms, fresh_until_ms=now_ms
        )
        row = note_gone(repository, before, now_ms, key=cached.package, gone_s=cached.gone_s)
        if row is None:
            return None
        until_ms = gone_until_ms(repository, row, cached.gone_s)
        trace.add(StepKind.GONE, fresh_until_ms=until_ms, **cached.step(kept.content))
        row = evolve(row, trace=trace.store())
        return Current(await cached.renew(kept.content, row), Outcome.STALE, row.fresh_until_ms, row)

    async def _keep_absent(self, cached: Cached[C], kept: Kept[C], trace: Trace, asked_ms: int) -> Current[Any]:
        """That no upstream has it, in the place of what is kept; what another process got meanwhile is served."""
        row = absence(cached.repository, cached.key, asked_ms, trace, kept.row)
        if kept.content is not None:
            # As ``look`` compares them. Where clocks differ, what was read may be later than the question.
            await cached.drop(row, max(asked_ms, _checked_ms(kept.row) + 1))
        self._negative_cache.add_everywhere(cached.repository, row)
        if kept.content is not None and (now := await self.look(cached)).content is not None and now.state.suffices:
            return _as_kept(cached, now, trace)
        return Current(None, Outcome.ABSENT, row.fresh_until_ms, row)


def times_of(row: UpstreamDocument) -> dict[str, Any]:
    """Fields of a step: which route gave a kept response, and when."""
    return {"route": row.route, "at_ms": row.checked_ms, "fetched_ms": row.fetched_ms}


def _as_kept(cached: Cached[C], kept: Kept[C], trace: Trace) -> Current[Any]:
    """What is kept, with the steps that led to it, and that it is used."""
    row, failed, path = kept.row, kept.failed, cached.repository.path
    if row is not None:
        trace.recall(path, row.trace if failed is None else failed.steps)
        trace.add(StepKind.CACHED, repository=path, fresh_until_ms=kept.until_ms, **times_of(row))
    outcome = Outcome.HIT if kept.state is KeptState.FRESH else Outcome.STALE
    return _served(kept.content, outcome, kept.until_ms, row, None if failed is None else failed.error)


def _served(
    content: Any, outcome: Outcome, until_ms: int, row: UpstreamDocument | None, failure: PkgrepoError | None
) -> Current[Any]:
    return Current(content, Outcome.ABSENT if content is None else outcome, until_ms, row, failure)


def _checked_ms(row: UpstreamDocument | None) -> int:
    return 0 if row is None else row.checked_ms
