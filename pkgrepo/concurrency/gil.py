"""Releases the GIL in loops that hold it for long; the worker processes, which load no Twisted, import this, too."""

from __future__ import annotations

import time
from typing import Final

WORK_S: Final = 0.0005  # seconds at most that another thread waits for the GIL; Python's own switch interval is 5 ms
PAUSE_S: Final = 0.00005  # seconds; without a pause the waiting thread does not wake up in time to take the GIL


class GilReleaser:
    """
    Call ``release_if_due`` in a loop of small steps.

    A call takes 0.1 us, and 60 us when it releases the GIL, every half millisecond.
    """

    def __init__(self) -> None:
        self._until = time.monotonic() + WORK_S

    def release_if_due(self) -> None:
        """Release the GIL if this thread has held it for ``WORK_S``."""
        if time.monotonic() >= self._until:
            time.sleep(PAUSE_S)
            self._until = time.monotonic() + WORK_S
