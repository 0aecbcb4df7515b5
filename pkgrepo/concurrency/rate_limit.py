"""Limits of how often one caller may do something, in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from pkgrepo.concurrency.lru import Lru

MOST_CALLERS = 10_000  # in memory; the ones that were not seen for longest are forgotten


class RateLimit:
    """At most ``most`` times within ``within_s`` seconds for each key; ``seconds`` returns the time of a clock."""

    def __init__(self, most: int, within_s: float, seconds: Callable[[], float]) -> None:
        self._most = most
        self._within_s = within_s
        self._seconds = seconds
        self._times: Lru[Hashable, deque[float]] = Lru(MOST_CALLERS)

    def take(self, key: Hashable) -> int:
        """Count once more for a key; or, if that is too often, the whole seconds until it is not."""
        now = self._seconds()
        times = self._times.get(key) or deque()
        while times and times[0] <= now - self._within_s:
            times.popleft()
        if len(times) >= self._most:
            return max(1, round(times[0] + self._within_s - now))
        times.append(now)
        self._times.put(key, times)
        return 0
