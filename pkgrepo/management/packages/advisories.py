"""The known vulnerabilities of versions and packages: their records, the route of a version, and numbers for lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Repository
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.repositories.advisories.known import Knowledge, OnPackage
from pkgrepo.repositories.advisories.package_urls import read_purl
from pkgrepo.repositories.format import Ecosystem
from pkgrepo.storage.catalog import advisories

from .contents import ComponentRecord
from .schema import Worst

MOST: Final = 200  # of a version that are shown
WORST: Final = SEVERITIES[::-1]

table = Table("packages")


class AdvisoryRecord(Record):
    """
    A known vulnerability of a version.

    severity is critical, high, moderate, low, info or unknown; score is that of its CVSS vector, null without one.
    affected are ranges of versions: comparators with blanks between them, alternatives with "||". fixed_versions are
    those from which on a range is free of it, fixed the last of them; without any, no version is known to be free of
    it. aliases are its ids in other databases, of which records are not shown beside it.
    """

    id: str
    title: str
    severity: str
    score: float | None
    url: str
    aliases: list[str]
    affected: str
    fixed: str
    fixed_versions: list[str]
    published_at: str

    @classmethod
    def of(cls, advisory: Advisory) -> AdvisoryRecord:
        """The record of an advisory."""
        fixed = [] if advisory.has_open_end else advisory.fixed_versions
        return cls.from_attributes(
            advisory,
            score=advisory.score or None,
            aliases=list(advisory.aliases),
            fixed=f">={fixed[-1]}" if fixed else "",
            published_at=advisory.published,
        )


class Advisories(Record):
    """
    The known vulnerabilities of a version, of total.

    checked is false if "none" means nothing: the server has no data for its format, or old ones; problem says why.
    """

    items: list[AdvisoryRecord]
    total: int
    checked: bool
    problem: str = ""


@table.get(
    "/package/<repository>/<package>/versions/<version>/advisories",
    CONTENT_READERS,
    "Show the known vulnerabilities of a version",
)
async def list_advisories(call: Call, version: str) -> Advisories:
    """
    From the export of the OSV database that the server was given, the worst first; each vulnerability once.

    checked is false if there are no data for this format, or only old ones: then "none" means nothing.
    """
    package, found = await call.find_version(version)
    state, known = await knowledge_of(call, call.repository), await known_of_package(call, package.key)
    if known is None:
        return Advisories(items=[], total=0, checked=False, problem=state.problem)
    worst = known.affecting(found.sort)
    items = [AdvisoryRecord.of(each) for each in worst[:MOST]]
    return Advisories(items=items, total=len(worst), checked=known.complete, problem=state.problem)


async def known_of_package(call: Call, package_key: str) -> OnPackage | None:
    """What is known of a package of the repository; None if there are no data for its format."""
    ecosystem = ecosystem_of(call, call.repository)
    return await call.shared.advisories.on_package(ecosystem, package_key) if ecosystem else None


def worst_of(known: OnPackage | None, sort: bytes) -> Worst | None:
    """How many vulnerabilities a version has, and the worst severity; None if that is not known."""
    if known is None:
        return None
    return said(Counter(each.severity for each in known.affecting(sort)), complete=known.complete)


async def worst_of_packages(call: Call, keys: Sequence[str]) -> Mapping[str, Worst]:
    """How many vulnerabilities versions of some packages have, by key; those of which it is not known are left out."""
    place = call.repository
    state = await knowledge_of(call, place)
    if not state.loaded:
        return {}
    found = await call.catalog.scan(advisories.severities_of_packages, (place.id, ecosystem_of(call, place)), keys)
    worst = {key: said(found.get(key, {}), complete=state.complete) for key in keys}
    return {key: each for key, each in worst.items() if each is not None}


def said(counts: Mapping[str, int], *, complete: bool) -> Worst | None:
    """The number of vulnerabilities that are counted by severity, and the worst; None for none of incomplete data."""
    if not counts and not complete:
        return None
    return sum(counts.values()), next((each for each in WORST if each in counts), None)


@frozen
class KnownPlace:
    """The ecosystem of a repository of whose packages something is known; for ``complete`` see L{OnPackage}."""

    ecosystem: str
    complete: bool


async def known_places(call: Call, repositories: Iterable[Repository]) -> dict[int, KnownPlace]:
    """Those of the repositories, by catalog key, of whose packages something is known."""
    states: dict[str, Knowledge] = {}
    found: dict[int, KnownPlace] = {}
    for each in repositories:
        state = states.get(each.format) or await knowledge_of(call, each)
        states[each.format] = state
        if state.loaded:
            found[each.id] = KnownPlace(ecosystem_of(call, each), state.complete)
    return found


async def knowledge_of(call: Call, repository: Repository) -> Knowledge:
    """What is known of packages in a repository."""
    ecosystem = call.services.formats[repository.format].ecosystem
    if ecosystem is None:
        problem = f"the database of vulnerabilities has no records of {repository.format} packages"
        return Knowledge(problem=problem, loaded=False)
    return await call.shared.advisories.knowledge(ecosystem.name)


def ecosystem_of(call: Call, repository: Repository) -> str:
    """OSV's word for the format of a repository; empty if it has none."""
    ecosystem = call.services.formats[repository.format].ecosystem
    return "" if ecosystem is None else ecosystem.name


async def check_components(call: Call, components: Sequence[ComponentRecord]) -> list[ComponentRecord]:
    """The components of a bill of materials with the known vulnerabilities of those with a package URL."""
    ecosystems = {each.ecosystem.name: each.ecosystem for each in call.services.formats.values() if each.ecosystem}
    places = [_place(each, ecosystems) for each in components]
    known: dict[str, Mapping[str, OnPackage]] = {}
    for word in sorted({each[0] for each in places if each is not None}):
        keys = {each[1] for each in places if each is not None and each[0] == word}
        found = await call.shared.advisories.on_packages(word, keys)
        if found is not None:
            known[word] = found
    checked = []
    for each, place in zip(components, places, strict=True):
        if place is None or place[0] not in known:
            checked.append(each)
            continue
        on_package = known[place[0]][place[1]]
        worst = on_package.affecting(place[2])
        names, severity = [one.id for one in worst], worst[0].severity if worst else None
        complete = on_package.complete or bool(worst)
        checked.append(msgspec.structs.replace(each, vulnerabilities=names, severity=severity, checked=complete))
    return checked


def _place(component: ComponentRecord, ecosystems: Mapping[str, Ecosystem]) -> tuple[str, str, bytes] | None:
    """Ecosystem, key and sort key of a component; None if its package URL is of no version that can be checked."""
    try:
        word, name, version = read_purl(component.purl, component.version)
        ecosystem = ecosystems[word]
        return word, ecosystem.package_key(name), ecosystem.sort(version)
    except Invalid:
        return None
