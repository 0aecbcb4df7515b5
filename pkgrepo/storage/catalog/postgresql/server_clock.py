"""The clock of the database's server, by which all nodes measure time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

DRIFT: Final = 0.001  # by how much of the time since a measurement its error may have grown


class ServerClock:
    """
    The time of the server: the steady clock of this machine, and how far the server's is ahead of it.

    Until the first measurement it is the time of this machine. ``steady`` gives seconds from any beginning.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._ahead_ms = time.time() * 1000 - steady() * 1000
        self._error_ms = math.inf
        self._measured_s = steady()

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, UTC; from any thread."""
        return int(self._steady() * 1000 + self._ahead_ms)

    def measured(self, server_ms: int, asked_s: float, answered_s: float) -> None:
        """
        Use the server's answer to a question between two times of the steady clock, unless an earlier one is better.

        The answer is wrong by half of the time that it took at most. One that contradicts an earlier answer counts:
        the server's clock was set, or it is another server.
        """
        ahead_ms = server_ms - (asked_s + answered_s) * 500
        error_ms = (answered_s - asked_s) * 500 + 1
        earlier_ms = self._error_ms + (answered_s - self._measured_s) * 1000 * DRIFT
        if error_ms <= earlier_ms or abs(ahead_ms - self._ahead_ms) > error_ms + earlier_ms:
            self._ahead_ms, self._error_ms, self._measured_s = ahead_ms, error_ms, answered_s
