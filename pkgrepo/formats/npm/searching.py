"""The requests that look over all packages of a repository: search, the old list of everything, whose is what."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.repositories.clock import from_ms

from . import names, search
from .admission import rights_of
from .search import Page, Query, Row
from .search_rows import read_rows

NO_STORE = ((b"Cache-Control", b"no-store"),)


class Searching:
    """Looks over one repository, for callers who see what they may read."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def search(self, request: Request, address: str) -> Answer:
        """The packages that fit the query, a page of them."""
        identity = await self._identify(request)
        query = search.read_query(_parameter(request, b"text") or "")
        page = search.read_page(_parameter(request, b"size"), _parameter(request, b"from"))
        if self._sees_all(identity):
            results, total = await self._services.catalog.scan(_find, self._repository.id, query, page)
        else:
            results, total = search.find(query, await self._readable(identity, query), page)
        now = from_ms(self._services.clock.now_ms())
        return json_answer(search.answer(results, total, now, address), headers=NO_STORE)

    async def listing(self, request: Request) -> Answer:
        """Everything, as old clients ask for it."""
        rows = await self._readable(await self._identify(request), None)
        return json_answer(search.listing(rows, self._services.clock.now_ms()), headers=NO_STORE)

    async def of_scope(self, request: Request, scope: str) -> Answer:
        """
        The packages of a scope, with what the caller may do with each.

        :raises NotFound: there are none; npm then asks for those of a user of this name
        """
        identity = await self._identify(request)
        wanted = scope.removeprefix("@")
        rows = [row for row in await self._readable(identity, None) if names.split_scope(row.name)[0] == wanted]
        if not rows:
            raise NotFound("scope", scope)
        may = self._services.access.may
        rights = {
            row.name: "write" if may(identity, Action.WRITE, self._repository, row.name) else "read" for row in rows
        }
        return json_answer(rights, headers=NO_STORE)

    async def of_user(self, request: Request, username: str) -> Answer:
        """The packages that somebody maintains, with what they may do with each, if anything."""
        right = rights_of(self._services, self._repository, username)
        rows = await self._readable(await self._identify(request), None)
        own = (row.name for row in rows if any(each.name == username for each in row.maintainers))
        return json_answer({name: word for name in own if (word := right(name))}, headers=NO_STORE)

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
        return [row.name for row in await self._readable(identity, None) if username in row.stars]

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

    async def _readable(self, identity: Identity, query: Query | None) -> list[Row]:
        rows = await self._services.catalog.scan(read_rows, self._repository.id, query)
        if self._sees_all(identity):
            return rows
        may = self._services.access.may
        return [row for row in rows if may(identity, Action.READ, self._repository, row.name)]


def _find(reader: Reader, repository_id: int, query: Query, page: Page) -> tuple[list[tuple[float, Row]], int]:
    return search.find(query, read_rows(reader, repository_id, query), page)


def _parameter(request: Request, name: bytes) -> str | None:
    values = request.args.get(name)
    return values[0].decode("utf-8", "replace") if values else None
