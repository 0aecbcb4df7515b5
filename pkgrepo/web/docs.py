"""
The pages of the book below ``/ui/docs``, which are the Markdown files in ``pkgrepo/docs``.

``index.md`` has a link to each page, in the order of the book and under the headings of its parts.
"""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import groupby
from typing import Final

from attrs import frozen
from markupsafe import Markup

from pkgrepo.errors import NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.readme import LONGEST_RENDERED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Visit

ORIGIN: Final = "http://127.0.0.1:8081"  # what the pages call the server
INDEX: Final = "index"
_HEADING: Final = re.compile(r"<h(?P<level>[23])>(?P<text>.*?)</h[23]>", re.DOTALL)
_PART: Final = re.compile(r"^(?=## )", re.MULTILINE)
_LINK: Final = re.compile(r"\]\((?P<name>[a-z0-9-]+)\.md(?P<anchor>#[\w-]+)?\)")


@frozen
class BookPage:
    """A page: its name in addresses, its heading, its Markdown, and the part of the book that it belongs to."""

    name: str
    title: str
    text: str
    part: str = ""

    def text_for(self, base_url: str) -> str:
        """The Markdown with links to pages of the console, and with ``base_url`` in place of ``ORIGIN``."""
        text = _LINK.sub(lambda found: f"]({ORIGIN}/ui/docs/{found['name']}{found['anchor'] or ''})", self.text)
        return text.replace(ORIGIN, base_url).replace(ORIGIN.partition("//")[2], base_url.partition("//")[2])


def pieces_of(text: str, longest: int) -> list[str]:
    """Markdown in pieces of at most ``longest`` characters that begin with a part, as far as no part is longer."""
    pieces = [""]
    for part in _PART.split(text) if len(text) > longest else [text]:
        if len(pieces[-1]) + len(part) <= longest:
            pieces[-1] += part
        else:
            pieces.append(part)
    return pieces


def with_anchors(text: Markup) -> tuple[Markup, list[tuple[str, str]]]:
    """A page whose headings can be linked to, and the anchors and titles of those of its parts (``h2``)."""
    taken: dict[str, int] = {}
    parts: list[tuple[str, str]] = []

    def mark(found: re.Match[str]) -> str:
        title = Markup(found["text"]).striptags()  # noqa: S704 - cleaned by the allow-list of readmes
        anchor = anchor_of(title)
        again = taken[anchor] = taken.get(anchor, -1) + 1
        anchor += f"-{again}" if again else ""
        if found["level"] == "2":
            parts.append((anchor, title))
        return f'<h{found["level"]} id="{anchor}">{found["text"]}</h{found["level"]}>'

    return Markup(_HEADING.sub(mark, text)), parts  # noqa: S704 - as above


def anchor_of(title: str) -> str:
    """The anchor of a heading, as forges make it: lower case, without punctuation, with hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def load_book() -> dict[str, BookPage]:
    """The pages by name, in the order of the book."""
    folder = files("pkgrepo") / "docs"
    index = _load((folder / f"{INDEX}.md").read_text("utf-8"), INDEX)
    book = {INDEX: index}
    for chapter in index.text.split("\n## ")[1:]:
        part = chapter.partition("\n")[0]
        for found in _LINK.finditer(chapter):
            book[found["name"]] = _load((folder / f"{found['name']}.md").read_text("utf-8"), found["name"], part)
    return book


def _load(text: str, name: str, part: str = "") -> BookPage:
    return BookPage(name, text.partition("\n")[0].removeprefix("# ").strip(), text, part)


BOOK = load_book()
PARTS = {part: list(found) for part, found in groupby(BOOK.values(), lambda each: each.part)}

ORDER: Final = list(BOOK)

pages = PageTable()


@pages.get("/docs")
@pages.get("/docs/<name>")
async def show_page(visit: Visit) -> Response:
    """A page of the book, the first one unless another is named."""
    name = visit.at.get("name", INDEX)
    found = BOOK.get(name)
    if found is None:
        raise NotFound("page", name)
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
