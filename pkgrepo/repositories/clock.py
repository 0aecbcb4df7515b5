"""The time, as the catalog keeps it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests bring their own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


def from_ms(value: int) -> datetime:
    """The aware UTC datetime of a catalog time."""
    return datetime.fromtimestamp(value / 1000, UTC)
