"""
Reads of a repository that is not hosted: its lists, and the JSON API about one gem.

The API answers from the catalog if the gem is hosted, else from ``/info``, whose lines have only a part of a
specification. Searches are not passed on to upstreams, and dependencies of many gems are in the compact and legacy
indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.api import records
from pkgrepo.formats.rubygems.api.records import Release
from pkgrepo.formats.rubygems.api.requests import ApiRequests, encode_versions
from pkgrepo.formats.rubygems.gemspec import ANY, RUNTIME, Dependency, GemSpec, Requirement
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.index.list_files import ListFile
from pkgrepo.formats.rubygems.index.requests import list_answer
from pkgrepo.formats.rubygems.names import RUBY, sort_key
from pkgrepo.formats.rubygems.proxied.merged_lists import MergedLists
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.resolving.serving import HostedMember, MemberParts
from pkgrepo.proxy.trace import Trace

_NO_DATE: Final = date(1980, 1, 2)  # what RubyGems takes for gems without one


class ListRequests:
    """The lists of one repository that is not hosted."""

    def __init__(self, services: Services, repository: Repository, lists: MergedLists) -> None:
        self._services = services
        self._repository = repository
        self._lists = lists

    async def versions(self, request: Request) -> Answer:
        """The list of all changes. :raises NotFound, UpstreamFailed: see L{MergedLists.versions}"""
        services, repository = self._services, self._repository
        generation, config_serial = services.catalog.generation(), services.registry.serial
        state, found = await self._lists.versions(services, repository, revalidate=request.revalidates)
        answer = list_answer(repository, found)
        if state.cacheable:
            services.answer_cache.put_answer(
                request,
                repository,
                answer,
                package=None,
                fresh=lambda r: state.fresh(r, config_serial),
                ends_s=state.ends_s,
                generation=generation,
            )
        return answer

    async def names(self, request: Request) -> Answer:
        """The names of all gems. :raises NotFound, UpstreamFailed: see L{MergedLists.versions}"""
        found = await self._lists.names(self._services, self._repository, revalidate=request.revalidates)
        return list_answer(self._repository, found)

    async def specs(self, request: Request, file: str) -> Answer:
        """
        A list of the legacy index.

        That of a virtual repository has the gems of all members that have a list of versions. If none has, it is the
        list of the first member that has one.

        :raises NotFound, UpstreamFailed: see L{MergedLists.specs}
        """
        if self._repository.type is RepositoryType.VIRTUAL:
            with suppress(NotFound):
                return self._specs_answer(
                    await self._lists.joined_specs(
                        self._services, self._repository, file, revalidate=request.revalidates
                    )
                )
        for leaf in self._services.proxy.resolver.flat_members(self._repository):
            if not leaf.active or leaf.type is not RepositoryType.PROXY:
                continue
            try:
                found = await self._lists.specs(self._services, leaf, file, revalidate=request.revalidates)
            except NotFound:
                continue
            return self._specs_answer(found)
        raise NotFound("file", file)

    def _specs_answer(self, found: ListFile) -> Answer:
        headers = ((b"Cache-Control", document_cache_control(self._repository)),)
        etag = b'"%s"' % found.sha256.hexdigest()[:32].encode()
        return Answer(
            body=found.content(), content_type=b"application/octet-stream", etag=etag, headers=headers, ranges=True
        )


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
                listed: list[Release] | None = await services.catalog.scan(records.list_releases, each, name)
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


def describe(name: str, line: bytes) -> Release:
    """The version that a line is about."""
    head, _, rest = line.decode("utf-8", "replace").partition("|")
    version, _, needed = head.partition(" ")
    number, _, platform = version.partition("-")
    said = dict(each.partition(":")[::2] for each in rest.split(","))
    created_at = _time(said.get("created_at", ""))
    return Release(
        GemSpec(
            name=name,
            number=number,
            platform=platform or RUBY,
            original_platform=platform or RUBY,
            rubygems_version="",
            date=_NO_DATE if created_at is None else created_at.date(),
            summary="",
            required_ruby=_requirement(said.get("ruby", "")),
            required_rubygems=_requirement(said.get("rubygems", "")),
            dependencies=tuple(map(_dependency, needed.split(","))) if needed else (),
        ),
        created_at,
        False,
        said.get("checksum", ""),
    )


def _dependency(text: str) -> Dependency:
    name, _, bounds = text.partition(":")
    return Dependency(name, RUNTIME, _requirement(bounds))


def _requirement(text: str) -> Requirement:
    if not text:
        return ANY
    pairs = (each.partition(" ") for each in text.split("&"))
    return tuple((operator, version) for operator, _, version in pairs)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
