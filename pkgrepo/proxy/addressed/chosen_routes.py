"""
Which route has served a version before: all files of a version come from one route, the chosen one.

Otherwise a route that has a version of the same name could add files of its own to that of another. What is kept tells
the route, and memory does until something is kept. While it is not known, one file of a version is asked for at a time,
and the others wait for the head of its response. A proxy with one route has nothing to decide.

Of several processes the one that has the version's lease decides:

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
is killed              one of them gets the lease, and decides
is silent              decide on their own after ``SILENT_S``: it is paused, or cut off
=====================  ===============================================================================================
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from attrs import define, field
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.logger import Logger

from pkgrepo.concurrency.lru import Lru
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.configuration import proxy_config_of, routes_of
from pkgrepo.proxy.leases import Leases
from pkgrepo.proxy.remote_files import is_former
from pkgrepo.proxy.upstream.routes import Route, refuse_proxy_loop
from pkgrepo.storage.catalog.packages import files, packages, versions

MOST: Final = 10_000  # versions in memory

FIRST_PAUSE_S: Final = 0.005  # before the second attempt to get a lease
LONGEST_PAUSE_S: Final = 0.1
SILENT_S: Final = 5.0  # without a response of the process that has the lease
TOLD_S: Final = 1.0  # news take milliseconds
RECORDED_S: Final = 60.0  # for a file that takes longer, or is given up, only the news count
MOST_HELD: Final = 1000  # leases of versions that are decided; PostgreSQL has room for 6,400 locks
Place = tuple[int, str, str]  # id of a repository, package, version
log = Logger()


@define(eq=False)
class ChosenRoutes:
    """
    Knows the routes of versions, in all proxies.

    ``on_note`` is told a repository's id, a package, a version and its route, for other processes; L{add} is for what
    they tell. Without ``decisions`` there are none.
    """

    _catalog: ICatalog
    _on_note: Callable[[int, str, str, str], None] = lambda *_: None
    _decisions: Decisions | None = None
    _known: Lru[Place, str] = field(factory=lambda: Lru(MOST), init=False)
    _locks: WeakValueDictionary[Place, DeferredLock] = field(factory=WeakValueDictionary, init=False)

    async def find(self, repository: Repository, request: FileRequest) -> Route | None:
        """The route that has served the version of a file; None if none of those has that there are now."""
        if not request.version_key:
            return None
        name = self._known.get(_place(repository, request))
        if name is None:
            name = await self._catalog.look(_find_route, repository, request.package_key, request.version_key)
        return next((each for each in proxy_config_of(repository).routes if each.name == name), None)

    async def candidates(self, repository: Repository, request: FileRequest) -> Sequence[Route]:
        """The routes to ask for a file, in order."""
        several = len(proxy_config_of(repository).routes) > 1
        chosen = await self.find(repository, request) if several else None
        routes = routes_of(repository, request.package_key)
        return [each for each in routes if chosen is None or each.name == chosen.name]

    @asynccontextmanager
    async def deciding(self, repository: Repository, request: FileRequest) -> AsyncIterator[None]:
        """
        A block in which no other task decides about the version; without waiting if there is nothing to decide.

        :raises UpstreamLoop: it is this request that the one waits for which decides
        """
        alone = len(proxy_config_of(repository).routes) == 1
        if alone or not request.version_key or await self.find(repository, request) is not None:
            yield
            return
        refuse_proxy_loop(repository.id, repository.path)
        place = _place(repository, request)
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = DeferredLock()
        await lock.acquire()
        try:
            if self._decisions is None:
                yield
                return

            async def is_decided() -> bool:
                return await self.find(repository, request) is not None

            async with self._decisions.turn(place, is_decided):
                yield
        finally:
            lock.release()

    def note(self, repository: Repository, request: FileRequest, route: Route, *, recorded: bool = False) -> None:
        """Remember that a route has a file of the version; ``recorded``: the file will be, see L{settle}."""
        if not request.version_key:
            return
        place = _place(repository, request)
        if self._known.get(place) != route.name:
            self._on_note(*place, route.name)
        self.add(*place, route.name)
        if self._decisions is not None:
            self._decisions.keep(place, recorded=recorded)

    def settle(self, repository: Repository, request: FileRequest) -> None:
        """A file of the version is recorded: others find its route there."""
        self._end(_place(repository, request))

    def add(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
        """Remember it in this process; an empty route forgets it."""
        place = (repository_id, package_key, version_key)
        if not route:
            self._known.pop(place)
            self._end(place)
            return
        self._known.put(place, route)

    def drop(self, repository: Repository, request: FileRequest) -> None:
        """Forget the route of a version, unless something of it is kept."""
        place = _place(repository, request)
        if self._known.pop(place) is not None:
            self._on_note(*place, "")
        self._end(place)

    def forget(self, repository: Repository) -> None:
        """Forget what is only in memory about a repository."""
        for place in self._known:
            if place[0] == repository.id:
                self._known.pop(place)
                self._end(place)

    def answer(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Answer another process that waits for the route of a version which this one decides about."""
        if self._decisions is not None:
            place = (repository_id, package_key, version_key)
            self._decisions.answer(place, self._known.get(place))

    def hear(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Note that another process decides about a version."""
        if self._decisions is not None:
            self._decisions.hear((repository_id, package_key, version_key))

    def close(self) -> None:
        """Let other processes decide."""
        if self._decisions is not None:
            self._decisions.close()

    def _end(self, place: Place) -> None:
        if self._decisions is not None:
            self._decisions.end(place)


def _place(repository: Repository, request: FileRequest) -> Place:
    return repository.id, request.package_key, request.version_key


def _find_route(reader: Reader, repository: Repository, package_key: str, version_key: str) -> str | None:
    package = packages.find_package(reader, repository.id, package_key)
    version = None if package is None else versions.find_version(reader, package.id, version_key)
    if version is None:
        return None
    kept = (each for each in files.files_of_version(reader, version.id) if not is_former(repository, each))
    return next((each.origin.route for each in kept if each.origin is not None), None)


class DecisionNews(Protocol):
    """What processes tell each other about a version that is being decided."""

    def chosen_route(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
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
            self._news.chosen_route(*place, route)
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
