"""
Turns in which documents of views of the past are made.

=========================  ===========================================================================================
what                       its turn
=========================  ===========================================================================================
a list of all packages     one at a time, and repositories take turns
a document of one package  one at a time beside the lists; repositories take turns, and so do the packages of each
=========================  ===========================================================================================

Clients can make up a view for each millisecond, and readers of present documents need the same threads: so views take
the time of two threads at most, and a package that is asked for at ever new times delays others by one document each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.http.responses import Refusal
from pkgrepo.model import Repository

MOST_WAITING: Final = 16  # lists, each of which takes a thread for seconds in a large repository
MOST_DOCUMENTS: Final = 256  # documents, most of which take a few ms; one of 1,500 versions takes 250 ms

T = TypeVar("T")


class ViewTurns:
    """The turns of one process."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._lists = FairSemaphore(1, reactor, most_waiting=MOST_WAITING)
        self._documents = FairSemaphore(1, reactor, most_waiting=MOST_DOCUMENTS)

    async def make(self, repository: Repository, work: Callable[[], Awaitable[T]], *, package: str | None = None) -> T:
        """
        The result of ``work``, at once if the repository is no view. It is about one package, or all.

        :raises Refusal: too many wait for their turn
        """
        if repository.view is None:
            return await work()
        whole = package is None
        turns, what = (self._lists, "lists") if whole else (self._documents, "documents")
        try:
            await turns.acquire((repository.id,) if whole else (repository.id, package))
        except QueueFull:
            raise Refusal(503, f"too many {what} of past states are made at the same time; try again", "busy") from None
        try:
            return await work()
        finally:
            turns.release()
