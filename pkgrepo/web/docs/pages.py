"""The pages of the book below ``/ui/docs``."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

from pkgrepo.errors import NotFound
from pkgrepo.http.answers import Answer
from pkgrepo.web.rendering.readme import Readmes
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

from .book import INDEX, load_book


class BookPages(Pages):
    """The documentation of the version that runs. ``readmes`` renders its Markdown."""

    pages: ClassVar = PageTable()

    def __init__(self, readmes: Readmes) -> None:
        self._readmes = readmes
        self._book = load_book()
        self._parts = {name: list(pages) for name, pages in groupby(self._book.values(), lambda each: each.part)}

    @pages.get("/docs")
    async def index(self, visit: Visit) -> Answer:
        """The first page of the book."""
        return await self.page(visit, INDEX)

    @pages.get("/docs/<name>")
    async def page(self, visit: Visit, name: str) -> Answer:
        """A page of the book."""
        found = self._book.get(name)
        if found is None:
            raise NotFound("page", name)
        text = await self._readmes.render(found.text_for(visit.base_url), "text/markdown")
        return visit.page("docs/page.html", parts=self._parts, page=found, text=text)
