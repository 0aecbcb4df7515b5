"""The list of repositories and the search."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.tables import Columns, PageTable, page_of_rows
from pkgrepo.web.visits import Form, Visit

MOST_LISTED: Final = 1000  # repositories; more are found by the filter
PER_PAGE: Final = 30  # repositories; a row takes 1.2 KB
HITS: Final = 50
CHANGED: Final = 10
CHOICES: Final = ("format", "repository", "license", "source", "withdrawn", "vulnerable", "severity")  # of a search

COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: (each.storage_name, each.name),
    "format": lambda each: each.format,
    "type": lambda each: each.type,
    "visibility": lambda each: each.visibility,
    "packages": lambda each: each.package_count or 0,
    "size": lambda each: each.usage_bytes or 0,
    "downloads": lambda each: sum(each.downloads or ()),
    "updated": lambda each: each.updated_at,
}


pages = PageTable()


@pages.get("/")
async def home(visit: Visit) -> Response:
    """The repositories that the caller may see, with a filter, sorted by a column."""
    info = await visit.api("GET", "/info")
    if not info.installed:
        return visit.redirect("/install")
    query = visit.asked("q", "format")
    listed = await visit.api(
        "GET", "/repository", query={**query, "include_usage": True, "limit": MOST_LISTED, "count": True}
    )
    rows = page_of_rows(visit, listed.items, COLUMNS, "name", PER_PAGE)
    changed = () if query or rows.page > 1 else (await visit.api("GET", "/activity", query={"limit": CHANGED})).items
    return visit.page(
        "home/repositories.html",
        rows=rows,
        unlisted=listed.total - len(listed.items),
        formats=info.formats,
        filtered=bool(query),
        changed=changed,
    )


def _starter(form: Form) -> dict[str, Any]:
    formats = form.all("formats")
    upstreams = {each: url for each in formats if (url := form.text(f"upstream-{each}"))}
    return {"formats": formats, "upstreams": upstreams, "visibility": form.text("visibility")}


pages.operation("/starter", "POST", "/system/starter", _starter, page=home)


@pages.get("/search")
async def search(visit: Visit) -> Response:
    """Packages of all repositories with the words in their names or in what they say of themselves."""
    text, query, hits = visit.query("q").strip(), visit.asked(*CHOICES), None
    if text or query:
        try:
            hits = await visit.api("GET", "/search/packages", query={**query, "q": text, "limit": HITS, "facets": True})
        except Refusal as refused:  # of vulnerabilities nothing is known
            visit.error = refused.sentence
    return visit.page("home/search.html", status=200, text=text, hits=hits, chosen=query)
