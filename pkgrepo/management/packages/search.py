"""
The routes that find packages in all repositories that the caller may see.

By words, those that changed last, or those that need a package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT, Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.storage.catalog.packages import dependencies
from pkgrepo.storage.catalog.packages.dependencies import spelling_of
from pkgrepo.storage.catalog.packages.events import Event, last_published
from pkgrepo.storage.catalog.packages.facts import NONE, Facts, facts_of
from pkgrepo.storage.catalog.packages.name_search import find_hits, search_packages
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, last_changed_packages, summaries_of

from .schema import DependentRecord, Facet, Facets, Hits, PackageHit, ReleaseRecord

MOST_WORDS = 8
MOST_EVENTS = 1000  # of a repository that are read for its last versions
WHERE = (
    Parameter("format", "Only packages in repositories of this format."),
    Parameter("repository", "Only packages in this repository: its id, or storage/name."),
    Parameter("limit", "Maximum number of items, 1 to 1000; 50 by default.", "integer"),
)


SOURCES: Final = ("hosted", "cached")
MOST_COUNTED: Final = 200  # hits; 1000 took up to 50 ms in a repository of 100,000 packages
MOST_VALUES: Final = 30

Found = list[tuple[int, PackageSummary]]
Visible = Mapping[int, Repository]  # by catalog key


@frozen
class Chosen:
    """What hits have to be; empty and false if it does not matter."""

    license: str = ""
    source: str = ""
    withdrawn: bool = False

    def fits(self, repository: Repository, facts: Facts) -> bool:
        """Whether a package of a repository is so."""
        return (
            self.license in ("", facts.license)
            and self.source in ("", source_of(repository))
            and (facts.withdrawn or not self.withdrawn)
        )


@frozen
class Result:
    """The packages to show, whether there are more, their facts, and the counts of all if they were counted."""

    found: Found
    more: bool
    facts: Mapping[tuple[int, str], Facts]
    facets: Facets | None = None


table = Table("packages")


@table.get(
    "/search/packages",
    VIEWERS,
    "Find packages by name or description",
    query=(
        Parameter("q", "Words separated by spaces; a match contains all of them (the first eight count)."),
        *WHERE,
        Parameter("license", "Only packages whose highest version declares this licence, as it is written."),
        Parameter("source", "Only packages of hosted repositories, or what proxies have cached: hosted or cached."),
        Parameter("withdrawn", "Only packages that have yanked or deprecated versions.", "boolean"),
        Parameter("facets", "Whether to count the hits by format, repository, licence and so on.", "boolean"),
    ),
)
async def find_packages(call: Call) -> Hits:
    """
    Searches all active repositories that the caller may see; hidden ones only for callers with the action edit.
    Packages that a companion of a repository has made from the repository's own, such as conda packages of wheels,
    are shown only if format or repository is given.

    A package with exactly the first word as name comes first, then names that begin with it, then other names, and
    then packages that have all words in their name, summary and keywords (the first 500 characters, of the highest
    version); of equals, the one with the most downloads. In a repository with more than 1000 packages, words that
    many descriptions have are looked for in those of the most downloaded packages.

    license, source and withdrawn choose among the best 200 of these, which are also those that facets count.
    """
    words = tuple(call.query("q").lower().split()[:MOST_WORDS])
    chosen = Chosen(license=call.query("license"), source=call.query("source"), withdrawn=call.flag("withdrawn"))
    if chosen.source not in ("", *SOURCES):
        raise Invalid(f"source is {' or '.join(SOURCES)}", "source")
    repositories, derived = await _searched(call)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    counts = call.flag("facets") or chosen != Chosen()
    find = _find_counted if counts else _find
    result = await call.catalog.scan(find, repositories, words, limit, chosen, derived=derived)
    return _record(result, repositories, facets=call.flag("facets"))


@table.get("/activity", VIEWERS, "List the packages that changed last", query=WHERE)
async def list_activity(call: Call) -> Hits:
    """Of all repositories that a search would look at; the latest change first."""
    repositories, derived = await _searched(call)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    result = await call.catalog.scan(_find_changed, repositories, limit, derived=derived)
    return _record(result, repositories, facets=False)


def source_of(repository: Repository) -> str:
    """Whether the packages of a repository are hosted or cached."""
    return SOURCES[repository.type is RepositoryType.PROXY]


def _find_changed(r: Reader, repositories: Visible, limit: int, *, derived: bool) -> Result:
    return _cut(r, last_changed_packages(r, sorted(repositories), limit + 1, derived=derived), limit)


def _find(
    r: Reader, repositories: Visible, words: Sequence[str], limit: int, _chosen: Chosen, *, derived: bool
) -> Result:
    return _cut(r, search_packages(r, sorted(repositories), words, limit + 1, derived=derived), limit)


def _cut(r: Reader, found: Found, limit: int) -> Result:
    shown = found[:limit]
    return Result(shown, len(found) > limit, facts_of(r, [(owner, each.key) for owner, each in shown]))


def _find_counted(
    r: Reader, repositories: Visible, words: Sequence[str], limit: int, chosen: Chosen, *, derived: bool
) -> Result:
    """The hits that are as chosen, and the counts of their values."""
    hits = find_hits(r, sorted(repositories), words, MOST_COUNTED + 1, derived=derived)
    facts = facts_of(r, hits[:MOST_COUNTED])
    kept = [each for each in hits if each in facts and chosen.fits(repositories[each[0]], facts[each])]
    complete = len(hits) <= MOST_COUNTED
    places = [repositories[owner] for owner, _ in kept]
    facets = Facets(
        hits=len(kept),
        complete=complete,
        formats=_facet(each.format for each in places),
        repositories=_facet(each.path for each in places),
        licenses=_facet(facts[each].license for each in kept),
        sources=_facet(source_of(each) for each in places),
        withdrawn=sum(facts[each].withdrawn for each in kept),
    )
    return Result(summaries_of(r, kept[:limit]), len(kept) > limit or not complete, facts, facets)


def _facet(values: Iterable[str]) -> list[Facet]:
    counted = Counter(each for each in values if each)
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [Facet(value=value, count=count) for value, count in ordered[:MOST_VALUES]]


@table.get(
    "/package/<repository>/<package>/dependents",
    CONTENT_READERS,
    "List the packages that need a package",
)
async def list_dependents(call: Call) -> Page[DependentRecord]:
    """
    Sorted by name. They are those of all active repositories of the same format that the caller may see, also of
    others than the one with this package; of each, the dependencies of its highest version count.

    Images have none. Some more than these may be counted in total: names that look alike.
    """
    package = await call.find_package()
    fitting = [each for each in call.registry.all() if each.active and each.format == call.repository.format]
    visible = {each.id: each for each in await call.services.authorizer.visible(call.identity, fitting)}
    place = spelling_of(package.key), sorted(visible)
    found = await call.page(
        dependencies.list_dependents,
        *place,
        by=dependencies.DEPENDENT_ORDER,
        show=lambda each: each,
        count=(dependencies.count_dependents, *place),
    )
    items = [
        _dependent(each, visible[each.repository_id]) for each in found.items if _is_meant(call, each, package.key)
    ]
    return Page(items=items, next=found.next, total=found.total)


def _is_meant(call: Call, dependent: dependencies.Dependent, key: str) -> bool:
    """Whether the name in a dependency is that of the package."""
    try:
        return call.format.package_key(dependent.needed.name) == key
    except Invalid:
        return False


def _dependent(found: dependencies.Dependent, repository: Repository) -> DependentRecord:
    return DependentRecord(
        name=found.package,
        repository_id=repository.uid,
        repository=repository.path,
        latest=found.latest,
        text=found.needed.text,
        kind=found.needed.kind,
    )


@table.get(
    "/repository/<repository>/releases",
    CONTENT_READERS,
    "List the versions that were published last",
    query=(WHERE[-1],),
)
async def list_releases(call: Call) -> list[ReleaseRecord]:
    """
    The latest first; each version once, with the time of its last file. Of proxies, those that were fetched last.

    At most 1,000 events of the repository are read: a version with many files counts for each.
    """
    limit, repository = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT), call.repository
    happened: list[Event] = await call.catalog.look(last_published, repository.id, MOST_EVENTS)
    names = list(dict.fromkeys(each.package_key for each in happened))
    allowed = set(await call.shared.access.allowed(call.identity, Action.READ, repository, names))
    found: dict[tuple[str, str], ReleaseRecord] = {}
    for each in happened:
        for version in [each.data["version"]] if "version" in each.data else each.data.get("tags", ()):
            if each.package_key in allowed and len(found) < limit:
                record = ReleaseRecord(
                    package=each.package_key, version=version, published_at=each.at, publisher=each.actor
                )
                found.setdefault((each.package_key, version), record)
    return list(found.values())


async def _searched(call: Call) -> tuple[dict[int, Repository], bool]:
    """The repositories that the request asks for and the caller may see, and whether derived packages count."""
    wanted = call.query("format")
    format_ = get_format(call.services.formats, wanted, "format").name if wanted else None
    place = call.query("repository").casefold()
    fitting = [
        each
        for each in call.registry.all()
        if each.active
        and (format_ is None or each.format == format_)
        and (not place or place in (each.uid, each.path.casefold()))
    ]
    visible = await call.services.authorizer.visible(call.identity, fitting)
    return {each.id: each for each in visible}, format_ is not None or place != ""


def _record(result: Result, repositories: Visible, *, facets: bool) -> Hits:
    items = []
    for owner, summary in result.found:
        repository, facts = repositories[owner], result.facts.get((owner, summary.key), NONE)
        items.append(
            PackageHit.of(
                summary,
                repository_id=repository.uid,
                repository=repository.path,
                format=repository.format,
                summary=facts.summary,
                license=facts.license,
            )
        )
    return Hits(items=items, truncated=result.more, facets=result.facets if facets else None)
