"""
What becomes of a response of upstreams that is kept: of a document, a list, a tag, or a file that may change.

======  ====================================================  ======================================================
state   meaning                                               next
======  ====================================================  ======================================================
NONE    nothing is kept                                       the routes are asked
FRESH   an upstream said it within ``cache_ttl``, or that     it is served, and no route is asked
        it has nothing within ``negative_ttl``
STALE   a route failed since, less than ``STALE_RETRY_MS``    it is served as stale, and no route is asked
        ago
GONE    all routes said within ``negative_ttl`` that they     it is served as stale, and no route is asked
        do not have it any more
OLD     it was FRESH, STALE or GONE; or it is of a later     the routes are asked. The one that said it confirms or
        time than now: the clock was set back since           replaces it; if none has it, it is GONE until
                                                              ``stale_if_gone`` is over, and then removed; if they
                                                              fail it is STALE; what one refuses (UpstreamDenied) is
                                                              not served, except lists of many packages
FORMER  it came from a route, or an address of it, that the   the routes are asked; it is not served, whatever they
        repository does not have any more; or no route has    say
        had it for ``stale_if_gone``; or it says that none
        of other routes than the present ones has it
======  ====================================================  ======================================================

That no upstream has something is a response, too, FRESH for ``negative_ttl``. While routes fail it is served, as STALE,
only of documents: virtual repositories ask the next member then.

Since when no route has had it is in its row, so that a restart does not change it. It is not GONE, and is removed at
once, if the route that said it is not asked for it any more. Files that never change have no states: they are served as
long as they are kept.

What no upstream has is in L{NegativeCache}, as far as it is not in the catalog: rows in memory, of documents, files and
images alike. They are bounded, since any client can ask for any name. The other processes are told of them.

Which routes are asked, and in which order, is in L{pkgrepo.proxy.caching.search_order}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

from attrs import define, evolve, field

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import NotFound, StorageFailed, StorageFull, UpstreamDenied, UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of, routes_of
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

STALE_RETRY_MS: Final = 10_000
REVALIDATE_MS: Final = 10_000  # a client may have an answer confirmed again so often
AHEAD_MS: Final = 60_000  # the clocks of nodes may differ so far
MOST_STEPS: Final = 20  # of an absence

GONE: Final = "gone_ms"  # fields of a row's ``meta``
ROUTES: Final = "routes"

# What may be better at the next attempt: until then, what an upstream said before is served.
FAILURES: Final = (UpstreamFailed, NormalisingFailed, StorageFull, StorageFailed)
MEMORY: Final = 24 * 1024 * 1024  # bytes; some 20,000 absences
ROW: Final = 600  # bytes, without its key and steps
STEP: Final = 360


class KeptState(Enum):
    """The state of a kept response."""

    NONE = auto()
    FRESH = auto()
    STALE = auto()
    GONE = auto()
    OLD = auto()
    FORMER = auto()

    @property
    def suffices(self) -> bool:
        """Whether it is served without asking."""
        return self in (KeptState.FRESH, KeptState.STALE, KeptState.GONE)

    def serves_after(self, failure: Exception, *, of_many: bool = False) -> bool:
        """Whether it is served after the routes were asked, with this result; ``of_many``: it is a list of packages."""
        if self in (KeptState.NONE, KeptState.FORMER):
            return False
        return of_many or not isinstance(failure, UpstreamDenied)


def state_of(
    repository: Repository,
    document: UpstreamDocument | None,
    now_ms: int,
    *,
    most_ttl_s: int | None = None,
    gone_s: int = 0,
    failed_until_ms: int = 0,
    revalidate: bool = False,
) -> KeptState:
    """
    The state of the response that ``document`` is the row of.

    It is fresh for ``most_ttl_s`` at most, and stale until ``failed_until_ms`` (0: no route failed since it came).
    ``gone_s`` is ``stale_if_gone`` where the repository does not set it. With ``revalidate`` a client wants it
    confirmed.
    """
    if document is not None:
        over = GONE in document.meta and now_ms >= gone_until_ms(repository, document, gone_s)
        if over or not is_current(repository, document):
            return KeptState.FORMER
    if now_ms < failed_until_ms:
        return KeptState.STALE
    if document is None:
        return KeptState.NONE
    if is_ahead(document, now_ms):
        return KeptState.OLD
    until_ms = fresh_until_ms(repository, document, most_ttl_s)
    if revalidate:
        until_ms = min(until_ms, document.checked_ms + REVALIDATE_MS)
    if failed_until_ms or now_ms >= until_ms:
        return KeptState.OLD
    return KeptState.GONE if GONE in document.meta else KeptState.FRESH


def confirm(
    repository: Repository, document: UpstreamDocument, now_ms: int, most_ttl_s: int | None = None
) -> UpstreamDocument:
    """The row of a response that its route has confirmed."""
    meta = {key: value for key, value in document.meta.items() if key != GONE}
    return evolve(document, meta=meta, checked_ms=now_ms, fresh_until_ms=now_ms + ttl_ms(repository, most_ttl_s))


def absence(
    repository: Repository, key: str, now_ms: int, trace: Trace, before: UpstreamDocument | None = None
) -> UpstreamDocument:
    """The row that says that no route has something, in the place of ``before``; ``trace`` has how they were asked."""
    return UpstreamDocument(
        key=key,
        meta={ROUTES: proxy_config_of(repository).routes_digest},
        trace=trace.store()[:MOST_STEPS],
        fetched_ms=later(now_ms, None if before is None else before.fetched_ms),
        checked_ms=now_ms,
        fresh_until_ms=now_ms + 1000 * proxy_config_of(repository).negative_ttl_s,
    )


def later(now_ms: int, before_ms: int | None) -> int:
    """The time of a new content, later than that of the one before."""
    return now_ms if before_ms is None else max(now_ms, before_ms + 1)


def note_gone(
    repository: Repository, document: UpstreamDocument, now_ms: int, *, key: str, gone_s: int = 0
) -> UpstreamDocument | None:
    """
    The row of a response after all routes that are asked for the package ``key`` said that they do not have it.

    None if it is not served any more. Until when it is, is in ``gone_until_ms``.
    """
    if document.route and all(each.name != document.route for each in routes_of(repository, key)):
        return None
    gone = evolve(document, meta={GONE: now_ms, **document.meta}, checked_ms=now_ms)
    until_ms = gone_until_ms(repository, gone, gone_s)
    if now_ms >= until_ms:
        return None
    retry_ms = now_ms + 1000 * proxy_config_of(repository).negative_ttl_s
    return evolve(gone, fresh_until_ms=min(retry_ms, until_ms))


def gone_until_ms(repository: Repository, document: UpstreamDocument, gone_s: int = 0) -> int:
    """Until when a response is served that no route has any more (ms)."""
    configured_s = proxy_config_of(repository).stale_if_gone_s
    gone_ms: int = document.meta[GONE]
    return gone_ms + 1000 * (gone_s if configured_s is None else configured_s)


def is_ahead(document: UpstreamDocument, now_ms: int) -> bool:
    """Whether a response is of a later time than now, so that nothing is known of its age: the clock was set back."""
    return document.checked_ms > now_ms + AHEAD_MS


def is_current(repository: Repository, document: UpstreamDocument) -> bool:
    """
    Whether the route of a response still exists, at the address from which that came, if it is known.

    That none has it is a response of all routes as they were then.
    """
    if not document.found:
        return document.meta.get(ROUTES) in (None, proxy_config_of(repository).routes_digest)
    routes = (each for each in proxy_config_of(repository).routes if each.name == document.route)
    return any(document.meta.get("address") in (None, "", each.url) for each in routes)


def fresh_until_ms(repository: Repository, document: UpstreamDocument, most_ttl_s: int | None = None) -> int:
    """Until when a response is FRESH or GONE (ms). The configuration may have other times now than when it came."""
    has_it = document.found and GONE not in document.meta
    fresh_ms = ttl_ms(repository, most_ttl_s) if has_it else 1000 * proxy_config_of(repository).negative_ttl_s
    return min(document.fresh_until_ms, document.checked_ms + fresh_ms)


def ttl_ms(repository: Repository, most_ttl_s: int | None = None) -> int:
    """For how long a response with content is fresh (ms)."""
    ttl_s = proxy_config_of(repository).ttl_s
    return 1000 * (ttl_s if most_ttl_s is None else min(ttl_s, most_ttl_s))


@define(eq=False)
class NegativeCache:
    """
    Remembers keys for the repository's ``negative_ttl``, with the steps by which upstreams were asked.

    ``on_note`` is called with the id of a repository and a row, for the ``add`` of others.
    """

    _clock: Clock
    _on_note: Callable[[int, UpstreamDocument], None] = lambda *_: None
    _absences: Lru[tuple[int, str], UpstreamDocument] = field(factory=lambda: Lru(MEMORY), init=False)
    _forgotten_ms: dict[int, int] = field(factory=dict, init=False)  # when, by the ids of repositories

    def find(self, repository_id: int, key: str) -> UpstreamDocument | None:
        """
        The row that tells that no upstream had it, also a long while ago; None if that is not known.

        What is of a later time than now is forgotten: it would hide all that is found from now on.
        """
        found = self._absences.get((repository_id, key))
        if found is not None and is_ahead(found, self._clock.now_ms()):
            self._absences.pop((repository_id, key))
            return None
        return found

    def check(self, repository: Repository, key: str, trace: Trace | None = None, *, what: str = "file") -> None:
        """:raises NotFound: no upstream had it a short while ago; ``what`` it is"""
        row = self.find(repository.id, key)
        until_ms = 0 if row is None or not is_current(repository, row) else fresh_until_ms(repository, row)
        if row is not None and until_ms > self._clock.now_ms():
            if trace is not None:
                trace.recall(repository.path, row.trace)
                trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=until_ms)
            raise NotFound(what, key)

    def note(self, repository: Repository, key: str, trace: Trace) -> None:
        """Remember that no upstream has it; ``trace`` has the steps by which they were asked, and no others."""
        self.add_everywhere(repository, absence(repository, key, self._clock.now_ms(), trace))

    def add_everywhere(self, repository: Repository, row: UpstreamDocument) -> None:
        """Remember it in all processes."""
        self.add(repository.id, row)
        self._on_note(repository.id, row)

    def add(self, repository_id: int, row: UpstreamDocument) -> None:
        """Remember it in this process, unless something later is known, or it was asked before ``forget``."""
        known = self.find(repository_id, row.key)
        forgotten_ms = min(self._forgotten_ms.get(repository_id, 0), self._clock.now_ms())
        since_ms = forgotten_ms if known is None else known.checked_ms
        if row.checked_ms >= since_ms:
            self._absences.put((repository_id, row.key), row, ROW + sys.getsizeof(row.key) + STEP * len(row.trace))

    def drop(self, repository_id: int, keys: Sequence[str]) -> None:
        """Forget some keys."""
        for key in keys:
            self._absences.pop((repository_id, key))

    def forget(self, repository: Repository) -> None:
        """Forget all of a repository: upstreams are asked again."""
        self._forgotten_ms[repository.id] = self._clock.now_ms()
        for place in self._absences:
            if place[0] == repository.id:
                self._absences.pop(place)
