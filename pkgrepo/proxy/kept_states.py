"""
What becomes of an answer of upstreams that is kept: of a document, a list, a tag, or a file that may change.

======  ====================================================  ======================================================
state   meaning                                               next
======  ====================================================  ======================================================
NONE    nothing is kept                                       the routes are asked
FRESH   an upstream said it within ``cache_ttl``, or that     it is served, and no route is asked
        it has nothing within ``negative_ttl``
STALE   a route failed since, less than ``STALE_RETRY_MS``    it is served with a warning, and no route is asked
        ago
OLD     it was fresh once                                     the routes are asked. The one that said it confirms or
                                                              replaces it; if they fail it is STALE; what one refuses
                                                              (UpstreamDenied) is not served, except lists of many
                                                              packages
FORMER  it came from a route, or an address of it, that the   the routes are asked; it is not served, whatever they
        repository does not have any more                     say
======  ====================================================  ======================================================

Which routes are asked, and in which order, is in L{pkgrepo.proxy.search_order}.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from pkgrepo.errors import StorageFailed, StorageFull, UpstreamDenied, UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

STALE_RETRY_MS: Final = 10_000
REVALIDATE_MS: Final = 10_000  # a client may have an answer confirmed again so often

# What may be better at the next attempt: until then, what an upstream said before is served.
FAILURES: Final = (UpstreamFailed, NormalisingFailed, StorageFull, StorageFailed)


class KeptState(Enum):
    """The state of a kept answer."""

    NONE = auto()
    FRESH = auto()
    STALE = auto()
    OLD = auto()
    FORMER = auto()

    @property
    def suffices(self) -> bool:
        """Whether it is served without asking."""
        return self in (KeptState.FRESH, KeptState.STALE)

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
    failed_until_ms: int = 0,
    revalidate: bool = False,
) -> KeptState:
    """
    The state of the answer that ``document`` is the row of.

    It is fresh for ``most_ttl_s`` at most, and stale until ``failed_until_ms``. With ``revalidate`` a client wants it
    confirmed.
    """
    if document is not None and not is_current(repository, document):
        return KeptState.FORMER
    if now_ms < failed_until_ms:
        return KeptState.STALE
    if document is None:
        return KeptState.NONE
    until_ms = fresh_until_ms(repository, document, most_ttl_s)
    if revalidate:
        until_ms = min(until_ms, document.checked_ms + REVALIDATE_MS)
    return KeptState.FRESH if now_ms < until_ms else KeptState.OLD


def is_current(repository: Repository, document: UpstreamDocument) -> bool:
    """Whether the route of an answer still exists, at the address from which the answer came, if that is known."""
    if not document.found:
        return True
    routes = (each for each in proxy_config_of(repository).routes if each.name == document.route)
    return any(document.meta.get("address") in (None, "", each.url) for each in routes)


def fresh_until_ms(repository: Repository, document: UpstreamDocument, most_ttl_s: int | None = None) -> int:
    """Until when an answer is fresh (ms). The configuration may have other times now than when it came."""
    fresh_ms = ttl_ms(repository, most_ttl_s) if document.found else 1000 * proxy_config_of(repository).negative_ttl_s
    return min(document.fresh_until_ms, document.checked_ms + fresh_ms)


def ttl_ms(repository: Repository, most_ttl_s: int | None = None) -> int:
    """For how long an answer with content is fresh (ms)."""
    ttl_s = proxy_config_of(repository).ttl_s
    return 1000 * (ttl_s if most_ttl_s is None else min(ttl_s, most_ttl_s))
