"""The route that searches packages by name in all repositories that the caller may see."""

from __future__ import annotations

from pkgrepo.management.api.access_rules import VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.storage.catalog.packages.summaries import search_packages

from .schema import Hits, PackageHit

MOST_WORDS = 8


class Search(Handlers):
    """Searches the names of packages."""

    table = Table("packages")

    @table.route(
        "GET",
        "/search/packages",
        access=VIEWERS,
        summary="Find packages by name",
        answer=Hits,
        query=(
            Parameter("q", "Words separated by spaces; a match contains all of them (the first eight count)."),
            Parameter("format", "Only packages in repositories of this format."),
            Parameter("repository", "Only packages in this repository: its id, or storage/name."),
            Parameter("limit", "Maximum number of items, 1 to 1000; 50 by default.", "integer"),
        ),
    )
    async def packages(self, call: Call) -> Hits:
        """
        Searches all active repositories that the caller may see; hidden ones only for callers with the action edit.

        A package with exactly the first word as name comes first, then names that begin with it, then the others.
        """
        words = call.query("q").lower().split()[:MOST_WORDS]
        limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
        wanted = call.query("format")
        format_ = get_format(self._services.formats, wanted, "format").name if wanted else None
        place = call.query("repository").casefold()
        fitting = [
            each
            for each in self._registry.all()
            if each.active
            and (format_ is None or each.format == format_)
            and (not place or place in (each.uid, each.path.casefold()))
        ]
        repositories = {each.id: each for each in await self._services.authorizer.visible(call.identity, fitting)}
        found = await self._catalog.scan(search_packages, sorted(repositories), words, limit + 1)
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
