"""How something of an upstream was found, and until when it is served without asking an upstream."""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen

from pkgrepo.model import Repository
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.storage.catalog.upstreams.upstream_documents import UpstreamDocument
from pkgrepo.storage.catalog.usage.cache_counts import CacheCounts


class Outcome(Enum):
    """How something was found: kept, fetched just now, kept and confirmed just now, or kept while upstreams fail."""

    HIT = CacheCounts()  # counted as a download, see L{CacheCounters}
    MISS = CacheCounts(misses=1)
    CONFIRMED = CacheCounts(confirmed=1)
    STALE = CacheCounts(stale=1)


@frozen
class Confirmation:
    """Until when something kept is served without asking an upstream (Unix s; 0 for ever), and how it was found."""

    outcome: Outcome
    ends_s: int = 0

    @property
    def stale(self) -> bool:
        """Whether upstreams failed, or do not have it any more."""
        return self.outcome is Outcome.STALE


def recall(trace: Trace, repository: Repository, state: UpstreamDocument) -> None:
    """Add the steps that led to a kept answer, and that it is used."""
    trace.recall(repository.path, state.trace)
    trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=state.fresh_until_ms, **times_of(state))


def times_of(state: UpstreamDocument) -> dict[str, Any]:
    """Fields of a step: which route gave a kept answer, and when."""
    return {"route": state.route, "at_ms": state.checked_ms, "fetched_ms": state.fetched_ms}
