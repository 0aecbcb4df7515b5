"""What is inside an archive: its entries, and the text of a small file."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Answer
from pkgrepo.web.finding import find_repository
from pkgrepo.web.rows import Columns, page_of_rows
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 200  # entries
COLUMNS: Final[Columns[Any]] = {"name": lambda each: each.name, "size": lambda each: each.size}


class ContentsPages(Pages):
    """The pages that look into archives."""

    pages: ClassVar = PageTable()

    @pages.get("/repositories/<storage>/<name>/contents/<path:path>")
    async def contents(self, visit: Visit, storage: str, name: str, path: str) -> Answer:
        """The entries of an archive, with a filter; with the name of one in the query, its text."""
        repository = await find_repository(visit, storage, name)
        place = {"repository": f"{storage}/{name}", "path": path}
        if visit.query("entry"):
            return await self._text(visit, repository, place)
        found = error = None
        try:
            found = await visit.api("GET", "/repository/<repository>/contents/<path:path>", place)
        except Invalid as refused:
            error = str(refused)
        entries = [each for each in found.entries if visit.query("q").lower() in each.name.lower()] if found else []
        rows = page_of_rows(visit, entries, COLUMNS, "name", PER_PAGE)
        return visit.page(
            "repositories/contents.html",
            status=422 if error else 200,
            repository=repository,
            tab="files",
            path=path,
            found=found,
            error=error,
            rows=rows,
        )

    async def _text(self, visit: Visit, repository: Any, place: dict[str, str]) -> Answer:
        entry, text, error = visit.query("entry"), "", None
        try:
            raw = await visit.api("GET", "/repository/<repository>/text/<path:path>", place, query={"entry": entry})
            text = raw.body.decode()
        except Invalid as refused:
            error = str(refused)
        return visit.page(
            "repositories/text.html",
            status=422 if error else 200,
            repository=repository,
            tab="files",
            path=place["path"],
            entry=entry,
            text=text,
            error=error,
        )
