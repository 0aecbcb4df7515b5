"""The clock, and times as the catalog stores them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The current time; tests have their own."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, UTC."""


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


def seconds_of(clock: Clock) -> Callable[[], float]:
    """A function that returns the seconds since the epoch by this clock."""
    return time.time if isinstance(clock, SystemClock) else lambda: clock.now_ms() / 1000


def from_ms(value: int) -> datetime:
    """Convert a time of the catalog to an aware UTC datetime."""
    return datetime.fromtimestamp(value / 1000, UTC)


def format_time(time: datetime) -> str:
    """Format a time as JavaScript does: UTC, milliseconds, ``Z``."""
    utc = time.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
