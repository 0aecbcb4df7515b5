"""
Which process decides from which route the files of a version come: the one that has the version's lease.

=====================  ===============================================================================================
the process with it    the others, for files of the version
=====================  ===============================================================================================
asks the routes        wait, and ask it; it answers that it is alive
has found a route      use that route, of which it tells them. It keeps the lease until a file is recorded, and tells
                       the route again to a process that asks: one that was started since
has recorded a file    find the route in the catalog; the lease is released
had a HEAD answered,   use the route. The lease is released after ``TOLD_S``, when all have heard of the route
or a mutable file
drops the route        one of them gets the lease, and decides
is killed              the same
is silent              decide on their own after ``SILENT_S``: it is paused, or cut off
=====================  ===============================================================================================
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.logger import Logger

from pkgrepo.proxy.leases import Leases

FIRST_PAUSE_S: Final = 0.005  # before the second attempt to get a lease
LONGEST_PAUSE_S: Final = 0.1
SILENT_S: Final = 5.0  # without an answer of the process that has the lease
TOLD_S: Final = 1.0  # news take milliseconds
RECORDED_S: Final = 60.0  # for a file that takes longer, or is given up, only the news count
MOST_HELD: Final = 1000  # leases of versions that are decided; PostgreSQL has room for 6,400 locks

Place = tuple[int, str, str]  # id of a repository, package, version

log = Logger()


class DecisionNews(Protocol):
    """What processes tell each other about a version that is being decided."""

    def winner(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
        """Tell the others which route has it; empty: that is open again."""

    def undecided(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Ask them for the route."""

    def deciding(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Tell them that this process has the lease, and no route yet."""


class Decisions:
    """The versions that this process decides about, or waits for."""

    def __init__(self, leases: Leases, news: DecisionNews, reactor: Any) -> None:
        self._leases = leases
        self._news = news
        self._reactor = reactor
        self._held: OrderedDict[Place, IDelayedCall | None] = OrderedDict()  # None: it is being decided
        self._heard_at: dict[Place, float] = {}

    @asynccontextmanager
    async def turn(self, place: Place, is_decided: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """
        A block that begins when a version is decided, or is for this process to decide.

        In the latter case the lease is released at its end, unless ``keep`` was called. In one process, one block of a
        version runs at a time.
        """
        leased = await self._acquire(place, is_decided)
        try:
            yield
        finally:
            if leased and self._held.get(place, self) is None:
                self._release(place)

    def keep(self, place: Place, *, recorded: bool) -> None:
        """Keep the lease of a version that was decided just now; ``recorded``: until ``end``, for a file of it."""
        if self._held.get(place, self) is not None:
            return
        kept = [each for each, call in self._held.items() if call is not None]
        if len(kept) >= MOST_HELD:
            self.end(kept[0])
        self._held[place] = self._reactor.callLater(RECORDED_S if recorded else TOLD_S, self._release, place)
        self._held.move_to_end(place)

    def end(self, place: Place) -> None:
        """Release a lease that was kept: a file is recorded, or the route was dropped."""
        call = self._held.get(place)
        if call is not None:
            call.cancel()
            self._release(place)

    def answer(self, place: Place, route: str | None) -> None:
        """Answer the question of another process for the route of a version, which is None if it is not known here."""
        if place not in self._held:
            return
        if route is not None:
            self._news.winner(*place, route)
        elif self._held[place] is None:
            self._news.deciding(*place)
        else:  # it was forgotten
            self.end(place)

    def hear(self, place: Place) -> None:
        """Note that the process with the lease is alive."""
        if place in self._heard_at:
            self._heard_at[place] = self._reactor.seconds()

    def close(self) -> None:
        """Release the leases that were kept."""
        for place in list(self._held):
            self.end(place)

    async def _acquire(self, place: Place, is_decided: Callable[[], Awaitable[bool]]) -> bool:
        """Whether this process has the lease now; else the version is decided, or the holder of the lease is silent."""
        self._heard_at[place] = self._reactor.seconds()
        pause_s = FIRST_PAUSE_S
        try:
            while not await self._take(place):
                if await is_decided():
                    return False
                if self._reactor.seconds() - self._heard_at[place] > SILENT_S:
                    log.warn("the process that chooses the route of {version!r} is silent", version=place[1:])
                    return False
                self._news.undecided(*place)
                await deferLater(self._reactor, pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            del self._heard_at[place]
        try:
            decided = await is_decided()  # by the process that had the lease
        except BaseException:
            self._release(place)
            raise
        if decided:
            self._release(place)
        return not decided

    async def _take(self, place: Place) -> bool:
        call = self._held.get(place)
        if call is not None:  # the route was forgotten here
            call.cancel()
        elif not await self._leases.acquire(_lease_of(place)):
            return False
        self._held[place] = None
        return True

    def _release(self, place: Place) -> None:
        del self._held[place]
        self._leases.release(_lease_of(place))


def _lease_of(place: Place) -> str:
    return f"version/{place[0]}/{place[1]}/{place[2]}"
