"""
The routes that find packages in all repositories that the caller may see.

By words, those that changed last, or those that need a package.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT, Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Action, Repository
from pkgrepo.storage.catalog.packages import dependencies
from pkgrepo.storage.catalog.packages.dependencies import spelling_of
from pkgrepo.storage.catalog.packages.events import Event, last_published
from pkgrepo.storage.catalog.packages.name_search import search_packages
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, last_changed_packages

from .schema import DependentRecord, Hits, PackageHit, ReleaseRecord

MOST_WORDS = 8
MOST_EVENTS = 1000  # of a repository that are read for its last versions
WHERE = (
    Parameter("format", "Only packages in repositories of this format."),
    Parameter("repository", "Only packages in this repository: its id, or storage/name."),
    Parameter("limit", "Maximum number of items, 1 to 1000; 50 by default.", "integer"),
)


class Find(Protocol):
    """Find packages in repositories."""

    def __call__(
        self, r: Reader, repository_ids: Sequence[int], limit: int, /, *, derived: bool
    ) -> list[tuple[int, PackageSummary]]:
        """At most ``limit`` packages; without ``derived`` none that is made from one of another repository."""


table = Table("packages")


@table.get(
    "/search/packages",
    VIEWERS,
    "Find packages by name or description",
    query=(
        Parameter("q", "Words separated by spaces; a match contains all of them (the first eight count)."),
        *WHERE,
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
    """
    words = call.query("q").lower().split()[:MOST_WORDS]

    def find(r: Reader, ids: Sequence[int], limit: int, *, derived: bool) -> list[tuple[int, PackageSummary]]:
        return search_packages(r, ids, words, limit, derived=derived)

    return await _hits(call, find)


@table.get("/activity", VIEWERS, "List the packages that changed last", query=WHERE)
async def list_activity(call: Call) -> Hits:
    """Of all repositories that a search would look at; the latest change first."""
    return await _hits(call, last_changed_packages)


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


async def _hits(call: Call, find: Find) -> Hits:
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
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
    repositories = {each.id: each for each in await call.services.authorizer.visible(call.identity, fitting)}
    derived = format_ is not None or place != ""
    found = await call.catalog.scan(partial(find, derived=derived), sorted(repositories), limit + 1)
    items = [
        PackageHit.of(
            summary,
            repository_id=repositories[owner].uid,
            repository=repositories[owner].path,
            format=repositories[owner].format,
        )
        for owner, summary in found[:limit]
    ]
    return Hits(items=items, truncated=len(found) > limit)
