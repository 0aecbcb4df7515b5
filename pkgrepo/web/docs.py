"""The pages of the book below ``/ui/docs``, also as Markdown; what is found in them; and their list for programs."""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import Final

from markupsafe import Markup

from pkgrepo.errors import NotFound
from pkgrepo.http.responses import Response, text_response
from pkgrepo.web.book import (
    INDEX,
    Picture,
    find_sections,
    list_for_programs,
    load_book,
    picture,
    pieces_of,
    sections_of,
    text_and_pictures,
    with_anchors,
)
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


@pages.get("/docs/pictures/<name>")
async def show_picture(visit: Visit) -> Response:
    """A picture of a page."""
    try:
        data = picture(visit.at["name"])
    except KeyError:
        raise NotFound("picture", visit.at["name"]) from None
    return Response(body=data, content_type=b"image/png", etag=b'"%s"' % hashlib.sha256(data).hexdigest().encode())


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
    shown = Markup("").join([await _rendered(visit, part) for each in pieces for part in text_and_pictures(each)])
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


async def _rendered(visit: Visit, part: str | Picture) -> Markup:
    """A part of a page in HTML."""
    if isinstance(part, str):
        return await visit.readmes.render(part, "text/markdown")
    shown = Markup('<p><img class="picture" src="{}/{}" alt="{}" width="{}" height="{}" loading="lazy"></p>')
    return shown.format("/ui/docs/pictures", part.name, part.text, part.width, part.height)
