"""The pages of the book below ``/ui/docs``, also as Markdown; what is found in them; and their list for programs."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from markupsafe import Markup

from pkgrepo.errors import NotFound
from pkgrepo.http.responses import Response, text_response
from pkgrepo.web.book import INDEX, find_sections, list_for_programs, load_book, pieces_of, sections_of, with_anchors
from pkgrepo.web.rendering.readme import LONGEST_RENDERED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Visit

LIST: Final = "llms.txt"
MARKDOWN: Final = ".md"
LONGEST_QUERY: Final = 100  # characters
BOOK = load_book()
PARTS = {part: list(found) for part, found in groupby(BOOK.values(), lambda each: each.part)}
SECTIONS: Final = [section for page in BOOK.values() for section in sections_of(page)]

ORDER: Final = list(BOOK)

pages = PageTable()


@pages.get("/docs")
@pages.get("/docs/<name>")
async def show_page(visit: Visit) -> Response:
    """A page of the book, the first one unless another is named; what is found by the query ``q``."""
    name, query = visit.at.get("name", INDEX), visit.query("q")[:LONGEST_QUERY]
    if name == LIST:
        return text_response(list_for_programs(BOOK, visit.base_url))
    found = BOOK.get(name.removesuffix(MARKDOWN))
    if found is None:
        raise NotFound("page", name)
    if name.endswith(MARKDOWN):
        return Response(body=found.text_for(visit.base_url).encode(), content_type=b"text/markdown; charset=utf-8")
    if query:
        return visit.page("docs/found.html", parts=PARTS, page=found, query=query, hits=find_sections(SECTIONS, query))
    pieces = pieces_of(found.text_for(visit.base_url), LONGEST_RENDERED)
    shown = Markup("").join([await visit.readmes.render(each, "text/markdown") for each in pieces])
    text, headings = with_anchors(shown)
    title, _, text = text.partition("</h1>")
    at = ORDER.index(name)
    return visit.page(
        "docs/page.html",
        parts=PARTS,
        page=found,
        title=title + Markup("</h1>"),
        text=text,
        headings=headings,
        before=BOOK[ORDER[at - 1]] if at else None,
        after=BOOK[ORDER[at + 1]] if at + 1 < len(ORDER) else None,
    )
