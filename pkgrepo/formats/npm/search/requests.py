"""The requests that look over all packages of a repository: search, the old list of everything, whose is what."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import permission_of
from pkgrepo.formats.npm.rendering import NO_STORE
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import JSON, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.search.index import Found, Query, SearchIndex, facet

from .listing import Listing
from .query import read_page, read_query
from .rendering import render_answer
from .rows import MAINTAINER, ROW, SCOPE, STAR, Row, read_entry, read_rows

T = TypeVar("T")

ASKED: Final = 100  # packages that are held against a caller's permissions in one turn of the reactor, some ms
READ: Final = 1000  # rows that are read in one turn of a thread


class SearchRequests:
    """Looks over one repository, for callers who see what they may read."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._listing = Listing(services.catalog, repository)

    async def search(self, request: Request, address: str) -> Answer:
        """The packages that fit the query, a page of them."""
        identity = await self._identify(request)
        query = read_query(_parameter(request, b"text") or "")
        page = read_page(_parameter(request, b"size"), _parameter(request, b"from"))
        index, work = await self._index(), self._work
        if self._sees_all(identity):
            found = await work(request, index.find, query, page.start, page.size)
        else:
            keys = await self._readable(request, identity, await work(request, index.keys, query))
            found = await work(request, index.page, query, keys, page.start, page.size)
        now = from_ms(self._services.clock.now_ms())
        return await self._services.catalog.scan(_answer, self._repository.id, found, now, address)

    async def listing(self, request: Request) -> Answer:
        """Everything, as old clients ask for it."""
        identity = await self._identify(request)
        now_ms = self._services.clock.now_ms()
        if self._sees_all(identity):
            content = await self._listing.whole(now_ms)
        else:
            content = await self._listing.of(set(await self._keys(request, identity, Query())), now_ms)
        return Answer(body=content, content_type=JSON, headers=NO_STORE)

    async def of_scope(self, request: Request, scope: str) -> Answer:
        """
        The packages of a scope, with what the caller may do with each.

        :raises NotFound: there are none; npm then asks for those of a user of this name
        """
        identity = await self._identify(request)
        wanted = scope.removeprefix("@")
        fitting = await self._keys(request, identity, Query(facets=((facet(SCOPE, wanted.lower()),),)))
        keys = [key for key in fitting if names.split_scope(key)[0] == wanted]
        if not keys:
            raise NotFound("scope", scope)
        may, repository = self._services.access.may, self._repository
        return await self._told(
            request, keys, lambda key: "write" if may(identity, Action.WRITE, repository, key) else "read"
        )

    async def of_user(self, request: Request, username: str) -> Answer:
        """The packages that somebody maintains, with what they may do with each, if anything."""
        right = permission_of(self._services, self._repository, username)
        identity = await self._identify(request)
        fitting = await self._keys(request, identity, Query(facets=((facet(MAINTAINER, username.lower()),),)))
        own = await self._only(fitting, lambda row: any(each.name == username for each in row.maintainers))
        return await self._told(request, own, right)

    async def of_caller(self, request: Request) -> Answer:
        """The same of the caller. :raises AuthenticationRequired: nobody"""
        return await self.of_user(request, await self._username(request))

    async def starred(self, request: Request) -> Answer:
        """The packages that got a star from the user whom the ``key`` names as a JSON string, for ``npm stars``."""
        username = (_parameter(request, b"key") or "").strip('"')
        found = await self._starred(request, username)
        return json_answer({"rows": [{"key": username, "value": name} for name in found]}, headers=NO_STORE)

    async def stars(self, request: Request, username: str) -> Answer:
        """The packages that got a star from a user, for ``pnpm stars``."""
        return json_answer(dict.fromkeys(await self._starred(request, username), True), headers=NO_STORE)

    async def stars_of_caller(self, request: Request) -> Answer:
        """The same of the caller. :raises AuthenticationRequired: nobody"""
        return await self.stars(request, await self._username(request))

    async def _starred(self, request: Request, username: str) -> list[str]:
        identity = await self._identify(request)
        fitting = await self._keys(request, identity, Query(facets=((facet(STAR, username),),)))
        return sorted(await self._only(fitting, lambda row: username in row.stars))

    async def _username(self, request: Request) -> str:
        identity = await self._services.access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        return identity.username

    async def _identify(self, request: Request) -> Identity:
        identity = await self._services.access.identify(request)
        if identity.anonymous and not self._sees_all(identity):
            raise AuthenticationRequired
        return identity

    def _sees_all(self, identity: Identity) -> bool:
        return self._services.access.may(identity, Action.READ, self._repository)

    async def _index(self) -> SearchIndex:
        return await self._services.searches.get(self._repository, ROW, read_entry)

    async def _keys(self, request: Request, identity: Identity, query: Query) -> list[str]:
        """The keys of everything that fits and that the caller may read."""
        keys = await self._work(request, (await self._index()).keys, query)
        return await self._readable(request, identity, keys)

    async def _work(self, request: Request, query: Callable[..., T], *args: Any) -> T:
        """What a query of the index finds, when it is this client's turn."""
        async with self._services.searches.semaphore.hold((request.client_address,)):
            return await self._services.pools.cpu(query, *args)

    async def _readable(self, request: Request, identity: Identity, keys: list[str]) -> list[str]:
        if self._sees_all(identity):
            return keys
        may, repository = self._services.access.may, self._repository
        found: list[str] = []
        for at in range(0, len(keys), ASKED):
            found += [key for key in keys[at : at + ASKED] if may(identity, Action.READ, repository, key)]
            await request.next_turn()
        return found

    async def _told(self, request: Request, keys: list[str], right: Callable[[str], str | None]) -> Answer:
        """The packages with what somebody may do with each; those with which nothing are left out."""
        rights: dict[str, str] = {}
        for at in range(0, len(keys), ASKED):
            rights.update((key, word) for key in keys[at : at + ASKED] if (word := right(key)))
            await request.next_turn()
        return json_answer(rights, headers=NO_STORE)

    async def _only(self, keys: list[str], fits: Callable[[Row], bool]) -> list[str]:
        """Those of the packages whose row fits."""
        found: list[str] = []
        for at in range(0, len(keys), READ):
            rows = await self._services.catalog.scan(read_rows, self._repository.id, keys[at : at + READ])
            found += [row.name for row in rows if fits(row)]
        return found


def _answer(reader: Reader, repository_id: int, found: Found, now: datetime, address: str) -> Answer:
    fits = dict(found.keys)
    rows = read_rows(reader, repository_id, fits)
    results = [(fits[row.name], row) for row in rows]
    return json_answer(render_answer(results, found.total, now, address), headers=NO_STORE)


def _parameter(request: Request, name: bytes) -> str | None:
    values = request.args.get(name)
    return values[0].decode("utf-8", "replace") if values else None
