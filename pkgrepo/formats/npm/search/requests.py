"""
Requests over all packages of a repository: search, the list of all, and lists by scope, owner or star.

Words are searched for in name, description and keywords, and all of them must match. The terms ``keywords:a,b``,
``author:x``, ``maintainer:x``, ``scope:x`` and ``@x`` restrict the results further.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import RepositoryRequests, permissions_of
from pkgrepo.formats.npm.search.listing import Listing
from pkgrepo.formats.npm.search.rows import (
    AUTHOR,
    KEYWORD,
    MAINTAINER,
    ROW,
    SCOPE,
    STAR,
    Row,
    read_entry,
    read_rows,
    render_answer,
)
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import JSON, NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.search_index import Found, Query, SearchIndex, facet, facet_with

DEFAULT_SIZE: Final = 20
MOST_SIZE: Final = 250
MOST_FROM: Final = 10_000  # results; the last that a page may begin at
LONGEST_TEXT: Final = 500  # characters; the rest is ignored
MOST_WORDS: Final = 8  # and authors; each is one more pass over the packages that match the ones before
MOST_TERMS: Final = 20

T = TypeVar("T")
CHECKED_AT_ONCE: Final = 100  # packages whose permissions are checked in one turn of the reactor; some ms
ROWS_AT_ONCE: Final = 1000  # rows that are read in one call of a thread


@frozen
class Page:
    """The part of the results that is requested."""

    size: int = DEFAULT_SIZE
    start: int = 0


def read_query(text: str) -> Query:
    """The query in a text. A term with an unknown qualifier is a word."""
    found: dict[str, list[str]] = {"words": [], "keywords": [], "author": [], "maintainer": [], "scope": []}
    for term in text[:LONGEST_TEXT].lower().split()[:MOST_TERMS]:
        qualifier, colon, value = term.partition(":")
        if colon and value and qualifier in found and qualifier != "words":
            found[qualifier].append(value)
        elif term.startswith("@") and "/" not in term and len(term) > 1:
            found["scope"].append(term)
        else:
            found["words"].append(term)
    groups = [tuple(facet(KEYWORD, each) for each in group.split(",") if each) for group in found["keywords"]]
    groups += [(facet(MAINTAINER, each),) for each in found["maintainer"]]
    groups += [(facet(SCOPE, each.removeprefix("@")),) for each in found["scope"]]
    return Query(
        words=tuple(found["words"][:MOST_WORDS]),
        facets=tuple(groups),
        patterns=tuple(facet_with(AUTHOR, each) for each in found["author"][:MOST_WORDS]),
    )


def read_page(size: str | None, start: str | None) -> Page:
    """The page in the parameters ``size`` and ``from``; one that is no number is ignored."""
    return Page(size=_number(size, DEFAULT_SIZE, MOST_SIZE), start=_number(start, 0, MOST_FROM))


def _number(text: str | None, default: int, most: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return default
    return min(int(text), most)


class SearchRequests(RepositoryRequests):
    """Answers searches and lists in one repository; each caller sees the packages that they may read."""

    def __init__(self, services: Services, repository: Repository) -> None:
        super().__init__(services, repository)
        self._listing = Listing(services.catalog, repository)

    async def search(self, request: Request, address: str) -> Answer:
        """A page of the packages that match the query."""
        identity = await self._identify(request)
        query = read_query(request.parameter(b"text") or "")
        page = read_page(request.parameter(b"size"), request.parameter(b"from"))
        index, work = await self._index(), self._work
        if await self._sees_all(identity):
            found = await work(request, index.find, query, page.start, page.size)
        else:
            keys = await self._readable(request, identity, await work(request, index.keys, query))
            found = await work(request, index.page, query, keys, page.start, page.size)
        now = from_ms(self._services.clock.now_ms())
        return await self._services.catalog.scan(_answer, self._repository.id, found, now, address)

    async def listing(self, request: Request) -> Answer:
        """All packages, as old clients request them."""
        identity = await self._identify(request)
        now_ms = self._services.clock.now_ms()
        if await self._sees_all(identity):
            content = await self._listing.whole(now_ms)
        else:
            content = await self._listing.of(set(await self._keys(request, identity, Query())), now_ms)
        return Answer(body=content, content_type=JSON, headers=NO_STORE)

    async def of_scope(self, request: Request, scope: str) -> Answer:
        """
        The packages of a scope, with the caller's permission on each.

        :raises NotFound: there are none; npm then requests those of a user of this name
        """
        identity = await self._identify(request)
        wanted = scope.removeprefix("@")
        matches = await self._keys(request, identity, Query(facets=((facet(SCOPE, wanted.lower()),),)))
        keys = [key for key in matches if names.split_scope(key)[0] == wanted]
        if not keys:
            raise NotFound("scope", scope)

        async def permissions(some: list[str]) -> dict[str, str]:
            writable = await self._services.access.allowed(identity, Action.WRITE, self._repository, some)
            return dict.fromkeys(some, "read") | dict.fromkeys(writable, "write")

        return await self._with_permissions(request, keys, permissions)

    async def of_user(self, request: Request, username: str) -> Answer:
        """The packages that a user maintains and has a permission on, with that permission."""
        identity = await self._identify(request)
        matches = await self._keys(request, identity, Query(facets=((facet(MAINTAINER, username.lower()),),)))
        own = await self._matching(matches, lambda row: any(each.name == username for each in row.maintainers))
        return await self._with_permissions(
            request, own, lambda some: permissions_of(self._services, self._repository, username, some)
        )

    async def of_caller(self, request: Request) -> Answer:
        """The packages that the caller maintains. :raises AuthenticationRequired: the caller is anonymous"""
        return await self.of_user(request, await self._username(request))

    async def starred(self, request: Request) -> Answer:
        """The packages starred by the user that the parameter ``key`` names as a JSON string, for ``npm stars``."""
        username = (request.parameter(b"key") or "").strip('"')
        found = await self._starred(request, username)
        return json_answer({"rows": [{"key": username, "value": name} for name in found]}, headers=NO_STORE)

    async def stars(self, request: Request, username: str) -> Answer:
        """The packages starred by a user, for ``pnpm stars``."""
        return json_answer(dict.fromkeys(await self._starred(request, username), True), headers=NO_STORE)

    async def stars_of_caller(self, request: Request) -> Answer:
        """The packages starred by the caller. :raises AuthenticationRequired: the caller is anonymous"""
        return await self.stars(request, await self._username(request))

    async def _starred(self, request: Request, username: str) -> list[str]:
        identity = await self._identify(request)
        matches = await self._keys(request, identity, Query(facets=((facet(STAR, username),),)))
        return sorted(await self._matching(matches, lambda row: username in row.stars))

    async def _username(self, request: Request) -> str:
        return (await self._require_login(request)).username

    async def _identify(self, request: Request) -> Identity:
        identity = await self._services.access.identify(request)
        if identity.anonymous and not await self._sees_all(identity):
            raise AuthenticationRequired
        return identity

    async def _sees_all(self, identity: Identity) -> bool:
        return await self._services.access.may(identity, Action.READ, self._repository)

    async def _index(self) -> SearchIndex:
        return await self._services.searches.get(self._repository, ROW, read_entry)

    async def _keys(self, request: Request, identity: Identity, query: Query) -> list[str]:
        """The keys of the packages that match and that the caller may read."""
        keys = await self._work(request, (await self._index()).keys, query)
        return await self._readable(request, identity, keys)

    async def _work(self, request: Request, query: Callable[..., T], *args: Any) -> T:
        """The result of a query of the index, run in a thread under a semaphore shared by all clients."""
        async with self._services.searches.semaphore.hold((request.client_address,)):
            return await self._services.pools.cpu(query, *args)

    async def _readable(self, request: Request, identity: Identity, keys: list[str]) -> list[str]:
        if await self._sees_all(identity):
            return keys
        found: list[str] = []
        for at in range(0, len(keys), CHECKED_AT_ONCE):
            some = keys[at : at + CHECKED_AT_ONCE]
            found += await self._services.access.allowed(identity, Action.READ, self._repository, some)
            await request.next_turn()
        return found

    async def _with_permissions(
        self, request: Request, keys: list[str], permissions: Callable[[list[str]], Awaitable[dict[str, str]]]
    ) -> Answer:
        """The packages with the permission on each; those without one are left out."""
        found: dict[str, str] = {}
        for at in range(0, len(keys), CHECKED_AT_ONCE):
            found |= await permissions(keys[at : at + CHECKED_AT_ONCE])
            await request.next_turn()
        return json_answer(found, headers=NO_STORE)

    async def _matching(self, keys: list[str], accepts: Callable[[Row], bool]) -> list[str]:
        """The names of the packages whose row satisfies a predicate."""
        found: list[str] = []
        for at in range(0, len(keys), ROWS_AT_ONCE):
            rows = await self._services.catalog.scan(read_rows, self._repository.id, keys[at : at + ROWS_AT_ONCE])
            found += [row.name for row in rows if accepts(row)]
        return found


def _answer(reader: Reader, repository_id: int, found: Found, now: datetime, address: str) -> Answer:
    scores = dict(found.keys)
    rows = read_rows(reader, repository_id, scores)
    results = [(scores[row.name], row) for row in rows]
    return json_answer(render_answer(results, found.total, now, address), headers=NO_STORE)
