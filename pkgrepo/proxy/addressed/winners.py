"""
Which route has served a version before: all files of a version come from one route.

Otherwise a route that has a version of the same name could add files of its own to that of another. What is kept tells
the route, and memory does until something is kept. While nobody knows, one file of a version is asked for at a time,
also by several processes, and the others wait for the head of its answer. A proxy with one route has nothing to decide.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from twisted.internet.defer import DeferredLock

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.remote_files import is_former
from pkgrepo.proxy.upstream.routes import Route, refuse_proxy_loop
from pkgrepo.storage.catalog.packages import files, packages, versions

from .decisions import Decisions, Place
from .request import FileRequest

MOST: Final = 10_000  # versions in memory


class Winners:
    """
    Knows the routes of versions, in all proxies.

    ``on_note`` is told a repository's id, a package, a version and its route, for other processes; L{add} is for what
    they tell. Without ``decisions`` there are none.
    """

    def __init__(
        self,
        catalog: ICatalog,
        on_note: Callable[[int, str, str, str], None] = lambda *_: None,
        decisions: Decisions | None = None,
    ) -> None:
        self._on_note = on_note
        self._decisions = decisions
        self._catalog = catalog
        self._known: OrderedDict[Place, str] = OrderedDict()
        self._locks: WeakValueDictionary[Place, DeferredLock] = WeakValueDictionary()

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
        routes = proxy_config_of(repository).routes
        winner = await self.find(repository, request) if len(routes) > 1 else None
        routes = routes if winner is None else (winner,)
        return [each for each in routes if each.serves(request.package_key)]

    @asynccontextmanager
    async def deciding(self, repository: Repository, request: FileRequest) -> AsyncIterator[None]:
        """
        A block in which nobody else decides about the version; without waiting if there is nothing to decide.

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
            self._known.pop(place, None)
            self._end(place)
            return
        self._known[place] = route
        self._known.move_to_end(place)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def drop(self, repository: Repository, request: FileRequest) -> None:
        """Forget the route of a version, unless something of it is kept."""
        place = _place(repository, request)
        if self._known.pop(place, None) is not None:
            self._on_note(*place, "")
        self._end(place)

    def forget(self, repository: Repository) -> None:
        """Forget what is only in memory about a repository."""
        for place in [each for each in self._known if each[0] == repository.id]:
            del self._known[place]
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
