"""
Requests over all packages of a repository: search, the list of all, and lists by scope, owner or star.

Words are searched for in name, description and keywords, and all of them must match. The terms ``keywords:a,b``,
``author:x``, ``maintainer:x``, ``scope:x`` and ``@x`` restrict the results further.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import permissions_of, require_login
from pkgrepo.formats.npm.search.listing import Listings, listing_of
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
    render_response,
)
from pkgrepo.formats.npm.search.shown import shown_rows
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, NO_STORE, Response, json_response
from pkgrepo.model import Action, Identity
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.search_index import Query, SearchIndex, facet, facet_with
from pkgrepo.untrusted.networks import networks_of

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
    """The page in the parameters ``size`` and ``from``; a text that is not a number is ignored."""
    return Page(size=_number(size, DEFAULT_SIZE, MOST_SIZE), start=_number(start, 0, MOST_FROM))


def _number(text: str | None, default: int, most: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return default
    return min(int(text), most)


async def search_hosted(context: Context[object], request: Request) -> Response:
    """A page of the packages that match the query."""
    identity = await identify(context, request)
    query = read_query(request.parameter(b"text") or "")
    page = read_page(request.parameter(b"size"), request.parameter(b"from"))
    index = await _index(context)
    if await sees_all_packages(context, identity):
        found = await work(context, request, index.find, query, page.start, page.size)
    else:
        keys = await readable(context, request, identity, await work(context, request, index.keys, query))
        found = await work(context, request, index.page, query, keys, page.start, page.size)
    services, repository, scores = context.services, context.repository, dict(found.keys)
    rows = await services.catalog.scan(read_rows, repository.id, scores)
    flat = services.proxy.resolver.flat_member(repository, repository)
    replaced = await shown_rows(services, flat, rows)
    shown = [new for row in rows if (new := replaced.get(row.name, row)) is not None]
    results = [(scores[row.name], row) for row in shown]
    total, now = found.total - len(rows) + len(shown), from_ms(services.clock.now_ms())
    return json_response(render_response(results, total, now, context.url(request)), headers=NO_STORE)


async def listing(context: Context[object], request: Request, listings: Listings) -> Response:
    """All packages, as old clients request them."""
    identity = await identify(context, request)
    catalog, repository, now_ms = context.services.catalog, context.repository, context.services.clock.now_ms()
    flat = {each.repository.id: each for each in context.services.proxy.resolver.ways(repository)}.get(repository.id)
    named = None if flat is None else await context.services.proxy.judges.named(flat)
    sees_all = await sees_all_packages(context, identity)
    if sees_all and named is None:
        content = await listings.whole(catalog, repository, now_ms)
    else:
        keys = None if sees_all else set(await _keys(context, request, identity, Query()))
        content = await listing_of(catalog, repository, keys, now_ms, named)
    return Response(body=content, content_type=JSON, headers=NO_STORE)


async def of_scope(context: Context[object], request: Request, scope: str) -> Response:
    """
    The packages of a scope, with the caller's permission on each.

    :raises NotFound: there are none; npm then requests those of a user of this name
    """
    identity = await identify(context, request)
    wanted = scope.removeprefix("@")
    matches = await _keys(context, request, identity, Query(facets=((facet(SCOPE, wanted.lower()),),)))
    keys = [key for key in matches if names.split_scope(key)[0] == wanted]
    if not keys:
        raise NotFound("scope", scope)

    async def permissions(some: list[str]) -> dict[str, str]:
        writable = await context.services.access.allowed(identity, Action.WRITE, context.repository, some)
        return dict.fromkeys(some, "read") | dict.fromkeys(writable, "write")

    return await _with_permissions(request, keys, permissions)


async def of_user(context: Context[object], request: Request, username: str) -> Response:
    """The packages that a user maintains and has a permission on, with that permission."""
    identity = await identify(context, request)
    matches = await _keys(context, request, identity, Query(facets=((facet(MAINTAINER, username.lower()),),)))
    own = await _matching(context, matches, lambda row: any(each.name == username for each in row.maintainers))
    return await _with_permissions(request, own, lambda some: permissions_of(context, username, some))


async def of_caller(context: Context[object], request: Request) -> Response:
    """The packages that the caller maintains. :raises AuthenticationRequired: the caller is anonymous"""
    return await of_user(context, request, await _username(context, request))


async def starred(context: Context[object], request: Request) -> Response:
    """The packages starred by the user that the parameter ``key`` names as a JSON string, for ``npm stars``."""
    username = (request.parameter(b"key") or "").strip('"')
    found = await _starred(context, request, username)
    return json_response({"rows": [{"key": username, "value": name} for name in found]}, headers=NO_STORE)


async def stars(context: Context[object], request: Request, username: str) -> Response:
    """The packages starred by a user, for ``pnpm stars``."""
    return json_response(dict.fromkeys(await _starred(context, request, username), True), headers=NO_STORE)


async def stars_of_caller(context: Context[object], request: Request) -> Response:
    """The packages starred by the caller. :raises AuthenticationRequired: the caller is anonymous"""
    return await stars(context, request, await _username(context, request))


async def _starred(context: Context[object], request: Request, username: str) -> list[str]:
    identity = await identify(context, request)
    matches = await _keys(context, request, identity, Query(facets=((facet(STAR, username),),)))
    return sorted(await _matching(context, matches, lambda row: username in row.stars))


async def _username(context: Context[object], request: Request) -> str:
    return (await require_login(context, request)).username


async def identify(context: Context[object], request: Request) -> Identity:
    """The identity of a caller. :raises AuthenticationRequired: they are anonymous, and may not read the repository"""
    identity = await context.services.access.identify(request)
    if identity.anonymous and not await sees_all_packages(context, identity):
        raise AuthenticationRequired
    return identity


async def sees_all_packages(context: Context[object], identity: Identity) -> bool:
    """Whether a caller may read every package."""
    return await context.services.access.authorizer.may(identity, Action.READ, context.repository)


async def _index(context: Context[object]) -> SearchIndex:
    return await context.services.searches.get(context.repository, ROW, read_entry)


async def _keys(context: Context[object], request: Request, identity: Identity, query: Query) -> list[str]:
    """The keys of the packages that match and that the caller may read."""
    keys = await work(context, request, (await _index(context)).keys, query)
    return await readable(context, request, identity, keys)


async def work(context: Context[object], request: Request, query: Callable[..., T], *args: Any) -> T:
    """The result of a query of the index, run in a thread under a semaphore shared by all clients."""
    async with context.services.searches.semaphore.hold(networks_of(request.client_address)):
        return await context.services.pools.cpu(query, *args)


async def readable(context: Context[object], request: Request, identity: Identity, keys: list[str]) -> list[str]:
    """The keys of the packages that a caller may read."""
    if await sees_all_packages(context, identity):
        return keys
    found: list[str] = []
    for at in range(0, len(keys), CHECKED_AT_ONCE):
        some = keys[at : at + CHECKED_AT_ONCE]
        found += await context.services.access.allowed(identity, Action.READ, context.repository, some)
        await request.next_turn()
    return found


async def _with_permissions(
    request: Request,
    keys: list[str],
    permissions: Callable[[list[str]], Awaitable[dict[str, str]]],
) -> Response:
    """The packages with the permission on each; those without one are left out."""
    found: dict[str, str] = {}
    for at in range(0, len(keys), CHECKED_AT_ONCE):
        found |= await permissions(keys[at : at + CHECKED_AT_ONCE])
        await request.next_turn()
    return json_response(found, headers=NO_STORE)


async def _matching(context: Context[object], keys: list[str], accepts: Callable[[Row], bool]) -> list[str]:
    """The names of the packages whose row satisfies a predicate."""
    found: list[str] = []
    for at in range(0, len(keys), ROWS_AT_ONCE):
        rows = await context.services.catalog.scan(read_rows, context.repository.id, keys[at : at + ROWS_AT_ONCE])
        found += [row.name for row in rows if accepts(row)]
    return found
