"""Upstreams of proxy repositories: limits of what is read from them, and their health."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import frozen


@frozen
class ReadLimits:
    """
    Limits of one answer.

    ``max_bytes`` counts what the reader gets, after decompression. ``total_s`` is the time from the request to the end
    of the body in seconds, with redirects and retries; None: as long as bytes keep arriving.
    """

    max_bytes: int
    total_s: float | None = None


class UpstreamState(StrEnum):
    """Whether requests are sent. A probe is the single request that decides whether to send others again."""

    CLOSED = "closed"  # all of them
    OPEN = "open"  # none
    HALF_OPEN = "half_open"  # the next one is the probe


@frozen
class UpstreamHealth:
    """
    What one process knows about an upstream.

    Times are aware UTC, None: never. ``last_error`` is a sentence without addresses. ``latency_s`` is the time until
    the head of the last answer. The counts begin when the process, or this value of the route, does.
    """

    state: UpstreamState
    last_error: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    latency_s: float | None
    successes: int
    failures: int
    limited_until: datetime | None
