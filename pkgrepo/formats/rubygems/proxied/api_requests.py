"""
The JSON API of proxies and virtual repositories, about one gem: from the catalog if it is hosted, else from ``/info``.

Searches are not passed on to upstreams, and dependencies of many gems are in the compact and legacy indexes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.api import reading
from pkgrepo.formats.rubygems.api.records import Release
from pkgrepo.formats.rubygems.api.requests import ApiRequests, encode_versions
from pkgrepo.formats.rubygems.index.indexing import INFO
from pkgrepo.formats.rubygems.version_order import sort_key
from pkgrepo.proxy.resolving.members import MemberParts
from pkgrepo.proxy.resolving.serving import HostedMember
from pkgrepo.proxy.trace import Trace

from .described import describe


class MemberApiRequests(ApiRequests):
    """Reads of one repository that is not hosted."""

    async def find_latest(self, name: str) -> Release | None:
        """The highest version that is no prerelease, else the highest one, for Ruby rather than a platform."""
        found = await self._releases(name)
        if not found:
            return None
        best = next((each for each in found if not each.spec.prerelease), found[0])
        return next((each for each in found if each.spec.full_version == best.spec.number), best)

    async def find_version(self, name: str, key: str) -> Release | None:
        """One version of a gem, or None."""
        found = await self._releases(name) or ()
        return next((each for each in found if each.spec.full_version == key), None)

    async def find_versions(self, name: str) -> bytes | None:
        """The records of all versions of a gem in JSON; None if there is no such gem."""
        found = await self._releases(name)
        return None if found is None else await self._services.pools.cpu(encode_versions, found)

    async def _releases(self, name: str) -> list[Release] | None:
        """All versions of a gem, the highest first; None if there is no such gem."""
        services = self._services
        try:
            members = await services.proxy.resolver.members(self._repository, name, Trace())
        except NotFound:
            return None
        hosted = [each.repository.id for each in members.serving if isinstance(each, HostedMember)]
        if hosted:
            found: list[Release] = []
            for each in hosted:
                listed: list[Release] | None = await services.catalog.scan(reading.list_releases, each, name)
                found += listed or ()
            return await services.pools.cpu(_in_order, found)
        return await services.pools.cpu(_described, name, await services.proxy.resolver.parts(members, name, INFO))


def _described(name: str, members: Sequence[MemberParts]) -> list[Release]:
    return _in_order([describe(name, line.body) for member in members for line in member.fragments[INFO]])


def _in_order(releases: Sequence[Release]) -> list[Release]:
    """Each version once, as the first member has it."""
    chosen: dict[str, Release] = {}
    for each in releases:
        chosen.setdefault(each.spec.full_version, each)
    return sorted(chosen.values(), key=lambda each: sort_key(each.spec.number, each.spec.platform), reverse=True)
