"""Searches by the clients of formats, in what the server has: the packages of all members, as far as they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Extent, RepositoryType
from pkgrepo.proxy.uncached import find_private
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.search.words import find_hits
from pkgrepo.storage.catalog.packages.text_index import summary_of
from pkgrepo.storage.catalog.packages.versions import newest_live
from pkgrepo.untrusted.networks import networks_of

MOST_FOUND: Final = 1000  # packages of one search, by which they are counted
MOST_WORDS: Final = 8

Place = tuple[int, str]  # id of a repository, and the key of a package


@frozen
class Match:
    """A package that was found, in its newest version that is shown."""

    name: str
    version: str
    summary: str


async def search_packages(context: Context[object], request: Request, text: str, size: int) -> tuple[list[Match], int]:
    """
    The best ``size`` packages that have all words of a text in their names or descriptions, and how many there are.

    A virtual repository and a proxy show what their members host and keep; upstreams are not asked.
    """
    identity = await context.admit(request, Action.READ, Extent.SOME)
    services, repository = context.services, context.repository
    resolver, catalog = services.proxy.resolver, services.catalog
    members = resolver.flat_members(repository)
    active = [each.id for each in members if each.active]
    async with services.searches.semaphore.hold(networks_of(request.client_address)):
        hits: Sequence[Place] = await catalog.scan(find_hits, active, text.lower().split()[:MOST_WORDS], MOST_FOUND)
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
