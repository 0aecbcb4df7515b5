"""
The versions of a gem in a repository that is not hosted, for the JSON API.

They come from the catalog if the gem is hosted, else from ``/info``, whose lines have only a part of a specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.gemspec import ANY, RUNTIME, Dependency, GemSpec, Requirement
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.names import RUBY, sort_key
from pkgrepo.gateway.services import Context
from pkgrepo.interfaces import Reader
from pkgrepo.proxy.format import MemberParts
from pkgrepo.proxy.resolving.serving import HostedMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.packages.packages import find_package

from .records import Release, list_releases

_NO_DATE: Final = date(1980, 1, 2)  # what RubyGems takes for gems without one


async def releases_of_members(context: Context[object], name: str) -> list[Release] | None:
    """All versions of a gem, the highest first; None if there is no such gem."""
    services = context.services
    try:
        members = await services.proxy.resolver.members(context.repository, name, Trace())
    except NotFound:
        return None
    hosted = [each for each in members.serving if isinstance(each, HostedMember)]
    if hosted:
        found: list[Release] = []
        for each in hosted:
            found += await services.catalog.scan(shown_releases, each.repository.id, name, each.judge)
        return await services.pools.cpu(_in_order, found)
    join = partial(services.proxy.resolver.parts, members, name, INFO)
    parts = await services.view_turns.make(context.repository, join, package=name)
    return await services.pools.cpu(_described, name, parts)


def shown_releases(r: Reader, repository_id: int, name: str, judge: Judge | None) -> list[Release]:
    """The releases of a gem of a hosted repository that no rule hides, the highest first."""
    listed, package = list_releases(r, repository_id, name) or [], find_package(r, repository_id, name)
    if judge is None or package is None:
        return listed
    hidden, _ = judge.hidden_files(r, package.id)
    return [each for each in listed if each.spec.full_version not in hidden]


def _described(name: str, members: Sequence[MemberParts]) -> list[Release]:
    return _in_order([_describe(name, line.body) for member in members for line in member.fragments[INFO]])


def _in_order(releases: Sequence[Release]) -> list[Release]:
    """Each version once, as the first member has it."""
    chosen: dict[str, Release] = {}
    for each in releases:
        chosen.setdefault(each.spec.full_version, each)
    return sorted(chosen.values(), key=lambda each: sort_key(each.spec.number, each.spec.platform), reverse=True)


def _describe(name: str, line: bytes) -> Release:
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
