"""
Searches by the clients of formats: in what the server has, and for some formats in what upstreams find.

Packages of the members are found as far as they are shown. What an upstream finds is shown behind them if the caller
may read it, no hosted member has the name, and no rule hides its version: where there are rules, the documents of the
first packages are asked. A package whose document cannot be had is left out, as is an upstream that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.concurrency.together import together
from pkgrepo.errors import Invalid, NotFound, PkgrepoError, UpstreamFailed
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Extent, ReadLimits, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.uncached import UncachedQuestion, ask_routes, find_private, passes_searches
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.search.words import find_hits
from pkgrepo.storage.catalog.packages.text_index import summary_of
from pkgrepo.storage.catalog.packages.versions import newest_live
from pkgrepo.untrusted.networks import networks_of

MOST_FOUND: Final = 1000  # packages of one search, by which they are counted
MOST_WORDS: Final = 8

MOST_JUDGED: Final = 10  # packages that an upstream has found, of one search, where rules decide
LIMITS: Final = ReadLimits(max_bytes=4 * 1024 * 1024, total_s=3.0)  # people wait for it

Place = tuple[int, str]  # id of a repository, and the key of a package


@frozen
class Match:
    """A package that was found, in its newest version that is shown."""

    name: str
    version: str
    summary: str


@frozen
class UpstreamSearch:
    """
    How upstreams are searched: at a ``path`` with the text and the number of results in the place of ``{}``, below the
    URL that the document ``service`` has at its top as ``base``.

    The response is a JSON object whose member ``items`` has the packages, with their name, version and description in
    ``fields``; at the end of the members ``total`` is how many there are. ``form`` is that of documents of packages.
    """

    service: DocumentRequest
    base: str
    path: str
    items: str
    fields: tuple[str, str, str]
    total: tuple[str, ...]
    form: str

    def read(self, body: bytes) -> tuple[list[Match], int]:
        """The packages in a response, and how many there are. :raises Invalid: it is none"""
        try:
            found: Any = msgspec.json.decode(body)
            rows = [[each.get(name) for name in self.fields] for each in found[self.items]]
            count = reduce(lambda value, name: value[name], self.total, found)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, KeyError, TypeError):
            raise Invalid("it is no response to a search") from None
        texts = [[each if isinstance(each, str) else "" for each in row] for row in rows]
        return [Match(*row) for row in texts if row[0]], count if isinstance(count, int) and count > 0 else 0


async def search_packages(
    context: Context[object], request: Request, text: str, size: int, upstream: UpstreamSearch | None = None
) -> tuple[list[Match], int]:
    """
    The best ``size`` packages that have all words of a text in their names or descriptions, and how many there are.

    A virtual repository and a proxy show what their members host and keep, and then what their upstreams find.
    """
    found, total = await _search_here(context, request, text, size)
    if upstream is None or not text.strip() or context.repository.view is not None:
        return found, total
    key_of = context.services.formats[context.repository.format].package_key
    others, more = await _search_upstreams(context, request, text, size, upstream)
    known = {key_of(each.name) for each in found}
    new = {key: each for key, each in others.items() if key not in known}
    return [*found, *new.values()][:size], max(total + more - (len(others) - len(new)), len(found) + len(new))


async def _search_upstreams(
    context: Context[object], request: Request, text: str, size: int, search: UpstreamSearch
) -> tuple[dict[str, Match], int]:
    """What upstreams find, by the keys of packages, as far as the caller may see it; and how much there is."""
    services, repository = context.services, context.repository
    members = services.proxy.resolver.flat_members(repository)
    find = partial(services.proxy.resolver.flat_member, repository)
    asked = [each for each in members if each.type is RepositoryType.PROXY and each.active]
    asked = [each for each in asked if passes_searches(members, find(each))]
    answers = await together(_ask(context, members, find(each), text, size, search) for each in asked)
    found: dict[str, Match] = {}
    for some, _ in answers:
        found = {**some, **found}
    identity = await context.admit(request, Action.READ, Extent.SOME)
    allowed = await services.access.allowed(identity, Action.READ, repository, [*found])
    return {key: found[key] for key in allowed}, sum(total for _, total in answers)


async def _ask(
    context: Context[object],
    members: Sequence[Repository],
    flat: FlatMember,
    text: str,
    size: int,
    search: UpstreamSearch,
) -> tuple[dict[str, Match], int]:
    """What the upstream of a proxy finds and is shown of it; nothing if it does not answer."""
    services, proxy = context.services, flat.repository
    documents, key_of = services.proxy.documents, services.formats[proxy.format].package_key
    try:
        held = await documents.get(proxy, search.service, Trace())
        base = await documents.read(proxy, search.service, held, lambda parts: parts.top.get(search.base))
        if not isinstance(base, str):
            return {}, 0
        path = f"{base.rstrip('/')}{search.path.format(quote(text, safe=''), size)}"
        body = await ask_routes(services.proxy.upstreams, proxy, UncachedQuestion("search", path, LIMITS))
        matches, total = await services.pools.cpu(search.read, body)
    except (Invalid, NotFound, UpstreamFailed):
        return {}, 0
    found: dict[str, Match] = {}
    for each in matches[:size]:
        with suppress(Invalid):  # no name that a package can have
            found.setdefault(key_of(each.name), each)
    private = await find_private(services.catalog, members, flat, [*found])
    found = {key: each for key, each in found.items() if key not in private}
    if flat.policy is not None:
        some = dict(islice(found.items(), MOST_JUDGED))
        shown = await together(_is_shown(context, key, each.version, search.form) for key, each in some.items())
        found = {key: each for (key, each), is_shown in zip(some.items(), shown, strict=True) if is_shown}
    return found, total


async def _is_shown(context: Context[object], key: str, version: str, form: str) -> bool:
    """Whether no rule hides a version of a package; False if that is not known."""
    try:
        state = await context.services.proxy.resolver.state(context.repository, key)
        _, state = await state.load(form)
    except (PkgrepoError, Refusal):
        return False
    return state.refused is None and state.refusal_of(lambda text: text == version) is None


async def _search_here(context: Context[object], request: Request, text: str, size: int) -> tuple[list[Match], int]:
    """The packages that members host or keep, and how many there are."""
    identity = await context.admit(request, Action.READ, Extent.SOME)
    services, repository = context.services, context.repository
    resolver, catalog = services.proxy.resolver, services.catalog
    members = resolver.flat_members(repository)
    active = [each.id for each in members if each.active]
    described = await services.descriptions.current()
    async with services.searches.semaphore.hold(networks_of(request.client_address)):
        hits: Sequence[Place] = await catalog.scan(
            find_hits, described, active, text.lower().split()[:MOST_WORDS], MOST_FOUND
        )
    found: dict[str, int] = {}
    for member in members:
        keys = [key for owner, key in hits if owner == member.id and key not in found]
        if member.type is RepositoryType.PROXY and keys:
            private = await find_private(catalog, members, resolver.flat_member(repository, member), keys)
            keys = [key for key in keys if key not in private]
        found |= dict.fromkeys(keys, member.id)
    ranked = list(dict.fromkeys(key for _, key in hits if key in found))
    allowed = await services.access.allowed(identity, Action.READ, repository, ranked)
    page = [(found[key], key) for key in allowed[:size]]
    judges: dict[Place, Judge] = {}
    for member in members:
        keys = [key for owner, key in page if owner == member.id]
        about = await services.proxy.judges.of_each(resolver.flat_member(repository, member), keys)
        judges |= {(member.id, key): judge for key, judge in about.items()}
    kinds = services.formats[repository.format].versions
    assert kinds is not None, "images are not searched so"
    describe = partial(_describe, page=page, judges=judges, is_prerelease=kinds.prerelease)
    return await catalog.scan(describe), len(allowed)


def _describe(
    r: Reader, page: Sequence[Place], judges: Mapping[Place, Judge], is_prerelease: Callable[[str], bool]
) -> list[Match]:
    """The packages in versions that no rule hides; those of which all are hidden are left out."""
    shown: list[Match] = []
    for place in page:
        package, judge = packages.find_package(r, *place), judges.get(place)
        if package is not None:
            hidden = () if judge is None else judge.hidden_files(r, package.id)[0]
            newest = newest_live(r, package.id, is_prerelease, hidden)
            if newest is not None:
                shown.append(Match(package.name, newest.text, summary_of(newest.meta)))
    return shown
