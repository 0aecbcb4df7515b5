"""When a failed request is sent again, and after which pause."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime

from twisted.internet.interfaces import IReactorTime

from pkgrepo.errors import UpstreamFailed, UpstreamLimited, UpstreamUnavailable

MOST_TRIES = 3
TRIES_WITH_OLD = 2  # of a question whose earlier answer is served if they all fail: somebody waits for it
FIRST_PAUSE_S = 0.25
SHORT_S = 5.0  # a longer wait than this is for the client to decide
UNKNOWN_LIMIT_S = 5.0  # for a 429 without Retry-After


def pause_before_retry(error: UpstreamFailed, tries: int, jitter: Callable[[], float]) -> float | None:
    """
    Seconds until the next try of an idempotent request that failed ``tries`` times; None: no other try mends it.

    ``jitter`` returns a number from 0 to 1.
    """
    if not isinstance(error, UpstreamUnavailable | UpstreamLimited):
        return None
    if error.retry_after_s is None:
        return FIRST_PAUSE_S * 3.0 ** (tries - 1) * (0.5 + jitter())
    return error.retry_after_s + jitter() if error.retry_after_s <= SHORT_S else None


def read_retry_after(value: str | None, reactor: IReactorTime) -> float | None:
    """Seconds in a Retry-After field (RFC 9110 section 10.2.3), at least 0; None if it is absent or malformed."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - reactor.seconds(), 0.0)
