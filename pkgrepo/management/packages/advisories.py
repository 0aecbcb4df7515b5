"""The known vulnerabilities of versions and packages: their records, the route of a version, and numbers for lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ProblemSentence, Total
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Repository
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.advisories.known import Knowledge, OnPackage
from pkgrepo.repositories.advisories.package_urls import read_purl
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog import advisories

from .contents import ComponentRecord
from .schema import Worst

MOST: Final = 200  # of a version that are shown
MOST_COMPONENTS: Final = 20  # of a vulnerability that are named
WORST: Final = SEVERITIES[::-1]


class AdvisoryRecord(Record):
    """
    A known vulnerability of a version.

    fixed_versions are those from which on a range is free of it, fixed the last of them; without any, no version is
    known to be free of it.
    """

    id: Annotated[str, meaning("The id in its database.")]
    title: Annotated[str, meaning("A title for people.")]
    severity: Annotated[str, meaning("critical, high, moderate, low, info or unknown.")]
    score: Annotated[float | None, meaning("The score of its CVSS vector; null without one.")]
    url: Annotated[str, meaning("The address of its page.")]
    aliases: Annotated[list[str], meaning("Its ids in other databases, of which records are not shown beside it.")]
    affected: Annotated[
        str, meaning('Ranges of affected versions: comparators with blanks between them, alternatives with "||".')
    ]
    fixed: Annotated[str, meaning("The last of fixed_versions; empty without any.")]
    fixed_versions: Annotated[list[str], meaning("The versions from which on a range is free of it.")]
    published_at: Annotated[str, meaning("When it was published.")]
    components: Annotated[list[str], meaning("What has it, at most 20; empty for the version itself.")] = []

    @classmethod
    def of(cls, advisory: Advisory, components: Sequence[str] = ()) -> AdvisoryRecord:
        """The record of an advisory, which is about these components of a version, if not about itself."""
        fixed = [] if advisory.has_open_end else advisory.fixed_versions
        return cls.from_attributes(
            advisory,
            score=advisory.score or None,
            aliases=list(advisory.aliases),
            fixed=f">={fixed[-1]}" if fixed else "",
            published_at=advisory.published,
            components=list(components[:MOST_COMPONENTS]),
        )


class Advisories(Record):
    """
    The known vulnerabilities of a version, of total.

    checked is false if "none" means nothing: the server has no data for its format, or old ones, or some components
    were not compared; problem says why.
    """

    items: Annotated[list[AdvisoryRecord], meaning("The known vulnerabilities.")]
    total: Total
    checked: Annotated[bool, meaning("Whether no vulnerabilities means that there are none; problem says why not.")]
    problem: ProblemSentence = ""


async def known_of_package(call: Call, package_key: str) -> OnPackage | None:
    """What is known of a package of the repository; None if there are no data for its format."""
    ecosystem = ecosystem_of(call, call.repository)
    return await call.shared.advisories.on_package(ecosystem, package_key) if ecosystem else None


def worst_of(known: OnPackage | None, sort: bytes) -> Worst | None:
    """How many vulnerabilities a version has, and the worst severity; None if that is not known."""
    if known is None:
        return None
    return said(Counter(each.severity for each in known.affecting(sort)), complete=known.complete)


async def worst_of_packages(call: Call, keys: Sequence[str], place: Repository | None = None) -> Mapping[str, Worst]:
    """
    How many vulnerabilities versions of some packages have, by key; those of which it is not known are left out.

    The packages are those of a ``place``, or of the repository of the call.
    """
    place = place or call.repository
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
    """The repositories, of some, about whose packages advisories are known, by catalog key."""
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
    checked = []
    for each, found in zip(components, await known_of_components(call, components), strict=True):
        if found is None:
            checked.append(each)
            continue
        worst, complete = found
        names, severity = [one.id for one in worst], worst[0].severity if worst else None
        checked.append(
            msgspec.structs.replace(each, vulnerabilities=names, severity=severity, checked=complete or bool(worst))
        )
    return checked


async def known_of_components(
    call: Call, components: Sequence[ComponentRecord]
) -> list[tuple[Sequence[Advisory], bool] | None]:
    """
    What affects each of some components, the worst first, and whether that is all.

    None for one without a package URL of which something is known.
    """
    checked = [each for each in call.services.formats.values() if each.ecosystem]
    places = [_place(each, checked) for each in components]
    known: dict[str, Mapping[str, OnPackage]] = {}
    for word in sorted({each[0] for each in places if each is not None}):
        keys = {each[1] for each in places if each is not None and each[0] == word}
        found = await call.shared.advisories.on_packages(word, keys)
        if found is not None:
            known[word] = found
    answers: list[tuple[Sequence[Advisory], bool] | None] = []
    for place in places:
        if place is None or place[0] not in known:
            answers.append(None)
            continue
        on_package = known[place[0]][place[1]]
        answers.append((on_package.affecting(place[2]), on_package.complete))
    return answers


def _place(component: ComponentRecord, formats: Sequence[StoredFormat]) -> tuple[str, str, bytes] | None:
    """Ecosystem, key and sort key of a component; None if its package URL is of no version that can be checked."""
    try:
        read = read_purl(component.purl, formats, "purl")
        assert read.format.ecosystem is not None, "it is one of these"
        ecosystem = read.format.ecosystem
        return ecosystem.name, ecosystem.package_key(read.name), ecosystem.sort(read.version or component.version)
    except Invalid:
        return None
