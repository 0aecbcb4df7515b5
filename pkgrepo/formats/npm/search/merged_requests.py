"""
Searches in proxies and virtual repositories: in what the server has, and in what the upstreams find.

What the server has comes first, in pages; the upstreams' results follow. An upstream that does not answer in time is
left out, and one that must not learn what people search for (``policy.pass_searches``) gets no request. Of a package
that a hosted member has, or whose name is reserved, no result of an upstream is shown.

What rules hide is not shown: of what the server has, another version is; of what only an upstream has, nothing but the
name and the version is known, and a result with a version that is refused by them is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from attrs import Factory, evolve, frozen

from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.search.requests import (
    LONGEST_TEXT,
    MOST_SIZE,
    Page,
    identify,
    read_page,
    read_query,
    readable,
    search_hosted,
    sees_all_packages,
    work,
)
from pkgrepo.formats.npm.search.rows import ROW, Row, read_entry, read_rows, render_response
from pkgrepo.formats.npm.search.shown import shown_rows
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.model import Identity, ReadLimits, Repository, RepositoryType
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.uncached import UncachedQuestion, ask_routes, find_private, passes_searches
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.search_index import Query
from pkgrepo.untrusted.strict_json import ERRORS

_Results = dict[str, tuple[float, Row | None]]  # score and row by package; None: no version of it is served

LIMITS: Final = ReadLimits(max_bytes=4 * 1024 * 1024, total_s=3.0)  # 250 results have 500 KiB; people wait for them


async def search(context: Context[object], request: Request) -> Response:
    """A page of the packages that match the query."""
    if context.repository.type is RepositoryType.HOSTED:
        return await search_hosted(context, request)
    identity = await identify(context, request)
    text = (request.parameter(b"text") or "")[:LONGEST_TEXT]
    page = read_page(request.parameter(b"size"), request.parameter(b"from"))
    members = context.services.proxy.resolver.flat_members(context.repository)
    present, count, replaced = await _search_here(context, request, identity, members, read_query(text), page)
    ranked = [(name, (score, row)) for name, (score, row) in present.items() if row is not None]
    shown = dict(ranked[page.start : page.start + page.size])
    found = await _search_upstreams(context, members, text, evolve(page, start=max(0, page.start - count)))
    now = from_ms(context.services.clock.now_ms())
    response = render_response(list(shown.values()), count + found.total, now, context.url(request))
    ours: list[Any] = [
        each if name in replaced else found.objects.get(name, each)
        for name, each in zip(shown, response["objects"], strict=True)
    ]
    others = [each for name, each in found.objects.items() if name not in present]
    return json_response({**response, "objects": (ours + others)[: page.size]}, headers=NO_STORE)


async def _search_here(
    context: Context[object],
    request: Request,
    identity: Identity,
    members: Sequence[Repository],
    query: Query,
    page: Page,
) -> tuple[_Results, int, set[str]]:
    """
    The best matches of all members, up to the end of the page, and the number of matches.

    With the names of those of which a rule hides the latest version.
    """
    sees_all, found, total = await sees_all_packages(context, identity), _Results(), 0
    replaced: set[str] = set()
    for member in members:
        if not member.active:
            continue
        index = await context.services.searches.get(member, ROW, read_entry)
        end = page.start + page.size
        if sees_all:
            matches = await work(context, request, index.find, query, 0, end)
        else:
            keys = await readable(context, request, identity, await work(context, request, index.keys, query))
            matches = await work(context, request, index.page, query, keys, 0, end)
        scores = dict(matches.keys)
        total += matches.total
        if member.type is RepositoryType.PROXY:
            # It may have kept another package of this name before a hosted member had it.
            private = await _private(context, members, member, scores)
            scores = {name: score for name, score in scores.items() if name not in private}
            total -= len(private)
        rows = await context.services.catalog.scan(read_rows, member.id, scores)
        flat = context.services.proxy.resolver.flat_member(context.repository, member)
        others = await shown_rows(context.services, flat, rows)
        for row in rows:
            if row.name in found:
                continue
            new = others.get(row.name, row)
            found[row.name] = (scores[row.name], new)
            if row.name in others:
                replaced.add(row.name)
                total -= new is None
    return dict(sorted(found.items(), key=lambda each: -each[1][0])), total, replaced


async def _search_upstreams(
    context: Context[object], members: Sequence[Repository], text: str, page: Page
) -> UpstreamResults:
    find = partial(context.services.proxy.resolver.flat_member, context.repository)
    active = [each for each in members if each.type is RepositoryType.PROXY and each.active]
    proxies = [each for each in active if passes_searches(members, find(each))]
    responses = await together(_ask(context, members, each, text, page) for each in proxies)
    objects: dict[str, msgspec.Raw] = {}
    for each in responses:
        objects = {**each.objects, **objects}
    return UpstreamResults(objects, sum(each.total for each in responses))


async def _ask(
    context: Context[object], members: Sequence[Repository], proxy: Repository, text: str, page: Page
) -> UpstreamResults:
    services = context.services
    try:
        body = await ask_routes(services.proxy.upstreams, proxy, search_question(text, page))
    except (NotFound, UpstreamFailed):
        return UpstreamResults()
    results = await services.pools.cpu(read_results, body)
    private = await _private(context, members, proxy, results.objects)
    flat = services.proxy.resolver.flat_member(context.repository, proxy)
    named = await services.proxy.judges.named(flat)
    routes = ["", *(each.name for each in proxy_config_of(proxy).routes)]  # which one answered, is not known

    def is_hidden(name: str) -> bool:
        return named is not None and any(named.hides(name, [results.versions[name]], each) for each in routes)

    shown = {name: each for name, each in results.objects.items() if name not in private and not is_hidden(name)}
    return evolve(results, objects=shown)


async def _private(
    context: Context[object], members: Sequence[Repository], proxy: Repository, names: Collection[str]
) -> set[str]:
    """The names, of some, under which this repository shows nothing of the proxy."""
    member = context.services.proxy.resolver.flat_member(context.repository, proxy)
    return await find_private(context.services.catalog, members, member, names)


@frozen
class UpstreamResults:
    """
    A page of results: the objects of packages by name, the best first, and the number of all results.

    ``versions`` are those that the objects show; empty for none.
    """

    objects: Mapping[str, msgspec.Raw] = Factory(dict)
    total: int = 0
    versions: Mapping[str, str] = Factory(dict)


class _Package(msgspec.Struct):
    name: str
    version: Any = ""


class _Object(msgspec.Struct):
    package: _Package


class _SearchResponse(msgspec.Struct):
    objects: list[msgspec.Raw]
    total: int = 0


def search_question(text: str, page: Page) -> UncachedQuestion:
    """The question for a page of the packages that match a text."""
    query = urlencode({"text": text, "size": page.size, "from": page.start})
    return UncachedQuestion("search", f"-/v1/search?{query}", LIMITS)


def read_results(body: bytes) -> UpstreamResults:
    """The results in a response; none in a response that cannot be read. Results without a name are left out."""
    try:
        body.decode()
        response = msgspec.json.decode(body, type=_SearchResponse)
    except ERRORS:
        return UpstreamResults()
    found: dict[str, msgspec.Raw] = {}
    versions: dict[str, str] = {}
    for each in response.objects[:MOST_SIZE]:
        try:
            package = msgspec.json.decode(each, type=_Object).package
        except ERRORS:
            continue
        if names.is_readable(package.name):
            found.setdefault(package.name, each)
            versions.setdefault(package.name, package.version if isinstance(package.version, str) else "")
    return UpstreamResults(found, max(response.total, len(found)), versions)
