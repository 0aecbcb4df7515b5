"""
The routes that find packages in all repositories that the caller may see.

By words, or those that changed last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS_OF_SOME, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.model.advisories import SEVERITIES
from pkgrepo.storage.catalog.advisories import severities_of_packages, vulnerable_packages
from pkgrepo.storage.catalog.packages.events import Event, last_published
from pkgrepo.storage.catalog.packages.facts import NONE, Described, Facts, facts_of
from pkgrepo.storage.catalog.packages.search.words import find_hits
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, last_changed_packages, summaries_of

from .advisories import KnownPlace, known_places, said
from .merged import is_merged, list_published, readable_members
from .schema import Facet, Facets, Hits, PackageHit, ReleaseRecord, Worst

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
MOST_LOOKED_AT: Final = 2000  # hits, where the caller may read some packages of a repository and not others
MOST_SEARCHED: Final = 20_000  # packages with known vulnerabilities
VULNERABLE: Final = "is:vulnerable"  # as a word

Found = list[tuple[int, PackageSummary]]
Hitlist = list[tuple[int, str]]  # the repository and the key of each
Visible = Mapping[int, Repository]  # by catalog key
Places = Mapping[int, KnownPlace]


@frozen
class Chosen:
    """What hits have to be; empty and false if it does not matter."""

    license: str = ""
    source: str = ""
    withdrawn: bool = False
    vulnerable: bool = False
    severity: str = ""

    def fits(self, repository: Repository, facts: Facts, known: Worst | None) -> bool:
        """Whether a package of a repository is so; what is not known of its vulnerabilities is taken for none."""
        count, severity = known or (0, None)
        return (
            self.license in ("", facts.license)
            and self.source in ("", source_of(repository))
            and (facts.withdrawn or not self.withdrawn)
            and (count > 0 or not self.vulnerable)
            and self.severity in ("", severity)
        )


@frozen
class Result:
    """
    The packages to show, whether there are more, their facts, and the counts of all if they were counted.

    ``behind`` is whether changes are left out that have just been made.
    """

    found: Found
    more: bool
    behind: bool
    facts: Mapping[tuple[int, str], Facts]
    known: Mapping[tuple[int, str], Worst]
    facets: Facets | None = None


BEHIND: Final = "behind:the latest changes are not in it yet/"
table = Table("packages")


@table.command(
    "search WORDS...=q",
    options="format, repository, limit 50",
    columns="PACKAGE: name | REPOSITORY: repository | FORMAT: format | LATEST: latest | VERSIONS: versions:number | "
    "DOWNLOADS: downloads:number | CHANGED: updated_at:ago",
    rows="items",
    whole=True,
    nothing="no package has such a name",
    notes=f"truncated:there are more: use --limit, or more words/ | {BEHIND}",
    about="Find packages by name or description, in all repositories that you may see.",
)
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
        Parameter("vulnerable", "Only packages that have versions with known vulnerabilities.", "boolean"),
        Parameter("severity", "Only packages whose worst known vulnerability has this severity."),
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

    The word is:vulnerable in q is the same as vulnerable. With it, or with severity, all packages with known
    vulnerabilities are looked through for those whose name or summary has all words, the worst first.

    The others choose among the best 200 of these, which are also those that facets count.
    """
    given = call.query("q").lower().split()
    words = tuple(each for each in given if each != VULNERABLE)[:MOST_WORDS]
    severity = call.query("severity")
    if severity and severity not in SEVERITIES:
        raise Invalid(f"severity is one of {', '.join(SEVERITIES[::-1])}", "severity")
    chosen = Chosen(
        license=call.query("license"),
        source=call.query("source"),
        withdrawn=call.flag("withdrawn"),
        vulnerable=call.flag("vulnerable") or severity != "" or VULNERABLE in given,
        severity=severity,
    )
    if chosen.source not in ("", *SOURCES):
        raise Invalid(f"source is {' or '.join(SOURCES)}", "source")
    repositories, derived = await _searched(call)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    counts = call.flag("facets") or chosen != Chosen()
    places = await known_places(call, repositories.values())
    if chosen.vulnerable and not places:
        raise Refusal(503, "nothing is known of vulnerabilities of these packages: see the advisories of the server")
    described = await call.services.shared.descriptions.current()
    if chosen.vulnerable:
        find = partial(_find_vulnerable, described, places, words)
    else:
        find = partial(_find_named, described, words, derived)
    hits, more = await _hits(call, repositories, find, MOST_COUNTED if counts else limit)
    if counts:
        result = await call.catalog.scan(_count, described, repositories, places, hits, more, limit, chosen)
    else:
        result = await call.catalog.scan(_show, described, places, hits, more)
    return _record(result, repositories, facets=call.flag("facets"))


@table.get("/activity", VIEWERS, "List the packages that changed last", query=WHERE)
async def list_activity(call: Call) -> Hits:
    """Of all repositories that a search would look at; the latest change first."""
    repositories, derived = await _searched(call)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    places = await known_places(call, repositories.values())
    hits, more = await _hits(call, repositories, partial(_find_changed, derived), limit)
    described = await call.services.shared.descriptions.current()
    result = await call.catalog.scan(_show, described, places, hits, more)
    return _record(result, repositories, facets=False)


def source_of(repository: Repository) -> str:
    """Whether the packages of a repository are hosted or cached."""
    return SOURCES[repository.type is RepositoryType.PROXY]


async def _hits(
    call: Call, repositories: Visible, find: Callable[[Reader, Sequence[int], int], Hitlist], most: int
) -> tuple[Hitlist, bool]:
    """
    The first hits whose packages the caller may read, ``most`` at most, and whether there may be more.

    ``find`` finds hits in repositories by their ids, up to a limit. Of repositories that the caller may read as a whole
    no package is asked about.
    """
    every = [*repositories.values()]
    authorizer = call.services.callers.authorizer
    may = await authorizer.may_each(call.identity, [(Action.READ, each, None) for each in every])
    narrowed = {each.id for each, whole in zip(every, may, strict=True) if not whole}
    limit = max(most + 1, MOST_LOOKED_AT) if narrowed else most + 1
    found: Hitlist = await call.catalog.scan(find, sorted(repositories), limit)
    asked = [each for each in found if each[0] in narrowed]
    may = await authorizer.may_each(call.identity, [(Action.READ, repositories[owner], key) for owner, key in asked])
    hidden = {each for each, readable in zip(asked, may, strict=True) if not readable}
    kept = [each for each in found if each not in hidden]
    return kept[:most], len(kept) > most or len(found) >= limit


def _find_changed(derived: bool, r: Reader, owners: Sequence[int], limit: int) -> Hitlist:
    return last_changed_packages(r, owners, limit, derived=derived)


def _find_named(
    described: Described, words: Sequence[str], derived: bool, r: Reader, owners: Sequence[int], limit: int
) -> Hitlist:
    return find_hits(r, described, owners, words, limit, derived=derived)


def _show(r: Reader, described: Described, places: Places, hits: Hitlist, more: bool) -> Result:
    facts = facts_of(r, described, hits)
    return Result(summaries_of(r, hits), more, described.is_behind, facts, _known_of(r, places, hits))


def _count(
    r: Reader,
    described: Described,
    repositories: Visible,
    places: Places,
    hits: Hitlist,
    more: bool,
    limit: int,
    chosen: Chosen,
) -> Result:
    """The hits that are as chosen, and the counts of their values."""
    facts = facts_of(r, described, hits)
    known = _known_of(r, places, list(facts))
    kept = [each for each in hits if each in facts and chosen.fits(repositories[each[0]], facts[each], known.get(each))]
    owners = [repositories[owner] for owner, _ in kept]
    severities = [known[each][1] for each in kept if each in known]
    facets = Facets(
        hits=len(kept),
        complete=not more,
        formats=_facet(each.format for each in owners),
        repositories=_facet(each.path for each in owners),
        licenses=_facet(facts[each].license for each in kept),
        sources=_facet(source_of(each) for each in owners),
        withdrawn=sum(facts[each].withdrawn for each in kept),
        vulnerable=sum(each is not None for each in severities) if places else None,
        severities=_facet(each or "" for each in severities),
        unchecked=_unchecked(repositories, places),
    )
    found = summaries_of(r, kept[:limit])
    return Result(found, len(kept) > limit or more, described.is_behind, facts, known, facets)


def _find_vulnerable(
    described: Described, places: Places, words: Sequence[str], r: Reader, owners: Sequence[int], limit: int
) -> Hitlist:
    """The packages with known vulnerabilities whose name or summary has all words."""
    every = vulnerable_packages(
        r, [(owner, places[owner].ecosystem) for owner in owners if owner in places], MOST_SEARCHED
    )
    if not words:
        return every[:limit]
    facts = facts_of(r, described, every)
    texts = {each: f"{each[1]} {facts.get(each, NONE).summary}".lower() for each in every}
    return [each for each in every if all(word in texts[each] for word in words)][:limit]


def _known_of(r: Reader, places: Places, keys: Hitlist) -> dict[tuple[int, str], Worst]:
    """The vulnerabilities of packages in repositories of which something is known."""
    found: dict[tuple[int, str], Worst] = {}
    for owner in {owner for owner, _ in keys if owner in places}:
        here = [key for place, key in keys if place == owner]
        counted = severities_of_packages(r, (owner, places[owner].ecosystem), here)
        for key in here:
            worst = said(counted.get(key, {}), complete=places[owner].complete)
            if worst is not None:
                found[owner, key] = worst
    return found


def _unchecked(repositories: Visible, places: Places) -> list[str]:
    """The formats of which too little is known; companions have what is made of packages of others."""
    complete = {key for key, each in places.items() if each.complete}
    return sorted({each.format for key, each in repositories.items() if key not in complete and each.parent is None})


def _facet(values: Iterable[str]) -> list[Facet]:
    counted = Counter(each for each in values if each)
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [Facet(value=value, count=count) for value, count in ordered[:MOST_VALUES]]


@table.get(
    "/repository/<repository>/releases",
    CONTENT_READERS_OF_SOME,
    "List the versions that were published last",
    query=(WHERE[-1],),
)
async def list_releases(call: Call) -> list[ReleaseRecord]:
    """
    The latest first; each version once, with the time of its last file. Of proxies, those that were fetched last.

    At most 1,000 events of the repository are read: a version with many files counts for each. A virtual repository has
    those of its members that the caller may read, of each package those of the first one that has it.
    """
    limit, repository = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT), call.repository
    happened: list[Event]
    if is_merged(call):
        happened = await call.catalog.scan(list_published, await readable_members(call), MOST_EVENTS)
    else:
        happened = await call.catalog.look(last_published, repository.id, MOST_EVENTS)
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
        and (each.stage is None or place != "")
        and (format_ is None or each.format == format_)
        and (not place or place in (each.uid, each.path.casefold()))
    ]
    visible = await call.services.callers.authorizer.visible(call.identity, fitting)
    return {each.id: each for each in visible}, format_ is not None or place != ""


def _record(result: Result, repositories: Visible, *, facets: bool) -> Hits:
    items = []
    for owner, summary in result.found:
        repository, facts = repositories[owner], result.facts.get((owner, summary.key), NONE)
        items.append(
            PackageHit.of(
                summary,
                known=result.known.get((owner, summary.key)),
                repository_id=repository.uid,
                repository=repository.path,
                format=repository.format,
                summary=facts.summary,
                license=facts.license,
            )
        )
    return Hits(items=items, truncated=result.more, behind=result.behind, facets=result.facets if facets else None)
