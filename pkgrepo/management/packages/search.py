"""The routes that find packages in all repositories that the caller may see: by name, or those that changed last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.storage.catalog.packages.name_search import search_packages
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, last_changed_packages

from .schema import Hits, PackageHit

MOST_WORDS = 8
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
