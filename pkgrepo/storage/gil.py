"""Long work in a thread that lets the reactor run in between."""

from __future__ import annotations

import time
from typing import Final

WORK_S: Final = 0.0005  # seconds at most that somebody else waits for the interpreter; by itself Python lets 5 ms pass
PAUSE_S: Final = 0.00005  # seconds; without any, who waits would not be awake in time to get the interpreter


class GilReleaser:
    """Call C{release_if_due} in a loop of small steps; it costs a tenth of a microsecond, and 60 once in half a ms."""

    def __init__(self) -> None:
        self._until = time.monotonic() + WORK_S

    def release_if_due(self) -> None:
        """Let others have the interpreter, if it was kept for long enough."""
        if time.monotonic() >= self._until:
            time.sleep(PAUSE_S)
            self._until = time.monotonic() + WORK_S
