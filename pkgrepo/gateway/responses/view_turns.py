"""Turns in which whole lists of views of the past are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.http.responses import Refusal
from pkgrepo.model import Repository

MOST_WAITING: Final = 16  # lists, each of which takes a thread for seconds in a large repository

T = TypeVar("T")


class ViewTurns:
    """
    One list of a view is made at a time in a process; repositories take turns.

    Whoever may read a repository can make up a view for each millisecond, and readers of present documents need the
    same threads.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._turns = FairSemaphore(1, reactor, most_waiting=MOST_WAITING)

    async def make(self, repository: Repository, work: Callable[[], Awaitable[T]]) -> T:
        """
        The result of ``work``, at once if the repository is no view.

        :raises Refusal: too many wait for their turn
        """
        if repository.view is None:
            return await work()
        try:
            await self._turns.acquire((repository.id,))
        except QueueFull:
            raise Refusal(503, "too many lists of past states are made at the same time; try again", "busy") from None
        try:
            return await work()
        finally:
            self._turns.release()
