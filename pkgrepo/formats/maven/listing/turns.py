"""How many listings this process reads at the same time: a directory of 200,000 files takes seconds of a thread."""

from __future__ import annotations

from typing import Any, Final

from twisted.internet import reactor as _reactor

from pkgrepo.concurrency.fair_semaphore import FairSemaphore

AT_ONCE: Final = 8  # listings whose length is being found out
MOST_WAITING: Final = 100
PAGES_AT_ONCE: Final = 2  # also of listings that are being sent, at the pace of their clients


class ListingTurns:
    """
    The permits of all listings.

    ``whole`` is for the first reading, which clients wait for; those that would wait too long are refused. ``pages``
    are for each page, so that slow clients hold nothing.
    """

    def __init__(self, *, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        reactor: Any = _reactor
        self.whole = FairSemaphore(at_once, reactor, most_waiting=most_waiting)
        self.pages = FairSemaphore(PAGES_AT_ONCE, reactor)
