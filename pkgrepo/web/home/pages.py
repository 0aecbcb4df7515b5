"""The list of repositories and the search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from pkgrepo.http.answers import Answer
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

MOST_LISTED: Final = 1000  # repositories; more are found by the filter
PER_PAGE: Final = 50
HITS: Final = 50
CHANGED: Final = 10

COLUMNS: Final[dict[str, Callable[[Any], Any]]] = {
    "name": lambda each: (each.storage_name, each.name),
    "format": lambda each: each.format,
    "type": lambda each: each.type,
    "visibility": lambda each: each.visibility,
    "packages": lambda each: each.package_count or 0,
    "size": lambda each: each.usage_bytes or 0,
    "updated": lambda each: each.updated_at,
}


class Home(Pages):
    """The first page and the search."""

    pages: ClassVar = PageTable()

    @pages.get("/")
    async def home(self, visit: Visit) -> Answer:
        """The repositories that the caller may see, with a filter, sorted by a column."""
        info = await visit.api("GET", "/info")
        if not info.installed:
            return visit.redirect("/install")
        order = visit.query("sort") if visit.query("sort").removeprefix("-") in COLUMNS else "name"
        query = {name: visit.query(name) for name in ("q", "format") if visit.query(name)}
        listed = await visit.api(
            "GET", "/repository", query={**query, "include_usage": True, "limit": MOST_LISTED, "count": True}
        )
        every = sorted(listed.items, key=COLUMNS[order.removeprefix("-")], reverse=order.startswith("-"))
        pages = max(1, -(-len(every) // PER_PAGE))
        page = min(visit.number("page", 1), pages)
        changed = () if query or page > 1 else (await visit.api("GET", "/activity", query={"limit": CHANGED})).items
        return visit.page(
            "home/repositories.html",
            repositories=every[(page - 1) * PER_PAGE : page * PER_PAGE],
            page=page,
            pages=pages,
            unlisted=listed.total - len(every),
            formats=info.formats,
            order=order,
            filtered=bool(query),
            changed=changed,
        )

    @pages.get("/search")
    async def search(self, visit: Visit) -> Answer:
        """Packages of all repositories whose names contain the words."""
        text = visit.query("q").strip()
        query = {name: visit.query(name) for name in ("format", "repository") if visit.query(name)}
        hits = None
        if text:
            hits = await visit.api("GET", "/search/packages", query={**query, "q": text, "limit": HITS})
        info = await visit.api("GET", "/info")
        return visit.page("home/search.html", text=text, hits=hits, formats=info.formats)
