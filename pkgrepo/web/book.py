"""
The book of documentation: the Markdown files in ``pkgrepo/docs``, what is found in them, and their list for programs.

``index.md`` has a link to each page, in the order of the book and under the headings of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from attrs import field, frozen
from markupsafe import Markup

ORIGIN: Final = "http://127.0.0.1:8081"  # what the pages call the server
INDEX: Final = "index"
MOST_HITS: Final = 30
LONGEST_EXCERPT: Final = 220  # characters
MOST_WORDS: Final = 6  # of a query that are looked for; each takes the reactor up to 1 ms
MOST_COUNTED: Final = 3  # places of a word in a section that count
PICTURES: Final = frozenset(each.name for each in (files("pkgrepo") / "docs" / "pictures").iterdir())
LAST: Final = frozenset({"api", "commands", "settings", "configuration"})  # lists, which have every word
_HEADING: Final = re.compile(r"<h(?P<level>[23])>(?P<text>.*?)</h[23]>", re.DOTALL)
_PART: Final = re.compile(r"^(?=## )", re.MULTILINE)
_SECTION: Final = re.compile(r"##{1,2} (.+)")
_MARKS: Final = re.compile(r"\*\*|`|\]\([^)]*\)|!?\[")
_PICTURE: Final = re.compile(r"^!\[(?P<text>[^\]\n]+)\]\(pictures/(?P<name>[a-z-]+\.png)\)\n", re.MULTILINE)
_SIZE_AT: Final = 16  # of the width in a PNG file, with the height behind it: 4 bytes each (PNG, section 11.2.2)
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


@frozen
class Picture:
    """A picture of a page: the name of its file, what is to be seen, and its size in pixels."""

    name: str
    text: str
    width: int
    height: int


def picture(name: str) -> bytes:
    """The file of a picture, which is a PNG of some 100 KB at the most. Raises KeyError if there is none."""
    if name not in PICTURES:
        raise KeyError(name)
    return (files("pkgrepo") / "docs" / "pictures" / name).read_bytes()


@cache
def _size_of(name: str) -> tuple[int, int]:
    """The width and height of a picture, whose file is read once for that."""
    size = picture(name)[_SIZE_AT : _SIZE_AT + 8]
    return int.from_bytes(size[:4]), int.from_bytes(size[4:])


def text_and_pictures(text: str) -> Iterator[str | Picture]:
    """Markdown in parts, with the pictures, which are lines of their own, between them."""
    start = 0
    for found in _PICTURE.finditer(text):
        yield text[start : found.start()]
        yield Picture(found["name"], found["text"], *_size_of(found["name"]))
        start = found.end()
    yield text[start:]


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
        anchor = _numbered(anchor_of(title), taken)
        if found["level"] == "2":
            parts.append((anchor, title))
        return f'<h{found["level"]} id="{anchor}">{found["text"]}</h{found["level"]}>'

    return Markup(_HEADING.sub(mark, text)), parts  # noqa: S704 - as above


def anchor_of(title: str) -> str:
    """The anchor of a heading, as forges make it: lower case, without punctuation, with hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _numbered(anchor: str, taken: dict[str, int]) -> str:
    """An anchor, with a number if it was ``taken`` before."""
    again = taken[anchor] = taken.get(anchor, -1) + 1
    return f"{anchor}-{again}" if again else anchor


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


@frozen
class Section:
    """A part of a page, down to the next heading: where it is, what it is called, and its Markdown."""

    page: BookPage
    anchor: str
    title: str
    text: str
    lower: tuple[str, str, str] = field(init=False, repr=False)  # its title, all its titles, and its text

    @lower.default
    def _lower(self) -> tuple[str, str, str]:
        return self.title.lower(), f"{self.title} {self.page.title}".lower(), self.text.lower()


@frozen
class Hit:
    """A section that has all words of a query, and a line of it that has one."""

    section: Section
    excerpt: str


def sections_of(page: BookPage) -> Iterator[Section]:
    """The parts of a page; what comes before its first heading has the title of the page."""
    title, anchor, lines, is_code = page.title, "", list[str](), False
    taken: dict[str, int] = {}
    for line in page.text.splitlines()[1:]:
        is_code ^= line.startswith("```")
        found = None if is_code else _SECTION.match(line)
        if found is None:
            lines.append(line)
            continue
        yield Section(page, anchor, title, "\n".join(lines))
        title, lines = found[1].replace("`", ""), []
        anchor = _numbered(anchor_of(title), taken)
    yield Section(page, anchor, title, "\n".join(lines))


def find_sections(sections: Sequence[Section], query: str) -> list[Hit]:
    """
    The sections with all words of a query, the best first: words in titles count most, lists come last.

    Of a query the first ``MOST_WORDS`` different words are looked for.
    """
    words = list(dict.fromkeys(query.lower().split()))[:MOST_WORDS]
    found = []
    for at, each in enumerate(sections):
        title, titles, text = each.lower
        if words and all(word in text or word in titles for word in words):
            score = sum(8 * (word in title) + 4 * (word in titles) + _counted(text, word) for word in words)
            found.append((each.page.name in LAST, -score, at))
    return [Hit(sections[at], _excerpt(sections[at], words)) for _, _, at in sorted(found)[:MOST_HITS]]


def _counted(text: str, word: str) -> int:
    """How often a word is in a text, as far as that counts."""
    number, at = 0, text.find(word)
    while at >= 0 and number < MOST_COUNTED:
        number += 1
        at = text.find(word, at + len(word))
    return number


def _excerpt(section: Section, words: Sequence[str]) -> str:
    """A line with a word of a query, rather of a text than of code, without marks, shortened around the word."""
    code: tuple[str, int] | None = None
    for text, is_code in _lines(section.text):
        if _first(words, text) < 0:
            continue
        line = _without_marks(text)
        at = _first(words, line)
        if at >= 0 and not is_code:
            return _around(line, at)
        if at >= 0 and code is None:
            code = line, at
    if code is not None:
        return _around(*code)
    return next((line for text, _ in _lines(section.text) if (line := _without_marks(text))), "")[:LONGEST_EXCERPT]


def _around(line: str, at: int) -> str:
    """A line, shortened around a place in it."""
    start = max(0, min(at - LONGEST_EXCERPT // 3, len(line) - LONGEST_EXCERPT))
    end = start + LONGEST_EXCERPT
    return f"{'… ' if start else ''}{line[start:end].strip()}{' …' if end < len(line) else ''}"


def _without_marks(line: str) -> str:
    return _MARKS.sub("", line).strip("| ")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a Markdown text, each with whether it is code."""
    is_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        elif not line.startswith("| --"):
            yield line, is_code


def _first(words: Sequence[str], line: str) -> int:
    """Where the first of some words begins in a line; -1 if there is none."""
    lower = line.lower()
    return min((at for word in words if (at := lower.find(word)) >= 0), default=-1)


def list_for_programs(book: Mapping[str, BookPage], base_url: str) -> str:
    """The pages as a list in Markdown, for programs that read (``llms.txt``, see llmstxt.org)."""
    index = book[INDEX].text
    summary = index.split("\n\n", 2)[1].replace("\n", " ")
    parts = [f"# pkgrepo\n\n> {summary}\n"]
    for chapter in index.split("\n## ")[1:]:
        name, _, text = chapter.partition("\n")
        links = _LINK.sub(lambda found: f"]({base_url}/ui/docs/{found['name']}.md)", text.strip())
        parts.append(f"## {name}\n\n{links}\n")
    return "\n".join(parts)
