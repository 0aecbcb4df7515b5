"""Times in the form of npm's documents."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(time: datetime) -> str:
    """A time as JavaScript writes it: UTC, milliseconds, ``Z``."""
    utc = time.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
