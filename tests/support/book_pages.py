"""
Runs the command blocks of a page of the book, in order, as a reader with a fresh server would.

What the reader has done before, and what he sees after, is a script for each page in ``tests/clients/book/pages``.
Lines of it that begin with ``#:`` say what the runner does there, all others are bash:

    #: settings         the lines up to the next ``#:`` are settings of the server
    #: here OLD = NEW   what the blocks below call OLD is NEW here; both to the end of the line
    #: clients A B      programs on the path: names of pinned clients, see ``client_programs``
    #: beside A B       what runs beside the server: ``issuer``, ``bucket``, ``nexus``, see ``book_services``
    #: block            the rest of the next block
    #: next N           the next N commands of it, which may have several lines
    #: not run: REASON  the rest of the next block is not run by this test
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import field, frozen

import pkgrepo

DOCS: Final = Path(pkgrepo.__file__).parent / "docs"
PAGES: Final = Path(__file__).parents[1] / "clients" / "book" / "pages"
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*'?(\w+)'?")


def all_blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a page in order: kind, and text."""
    return _BLOCK.findall((DOCS / f"{page}.md").read_text("utf-8"))


def blocks_of(page: str, kind: str = "sh") -> list[str]:
    """The texts of the blocks of this kind in a page, in order."""
    return [text for language, text in all_blocks(page) if language == kind]


def commands_of(block: str) -> list[str]:
    """
    The commands of a block, each with its line ends, and with comments before it.

    A command goes on after a backslash, in quotes, after a pipe, and to the end of a here document. Where lines begin
    with ``$``, these are the commands, and the others what they print.
    """
    lines = block.splitlines(keepends=True)
    if any(line.startswith("$ ") for line in lines):
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    found, current, ends_with = [], "", ""
    for line in lines:
        current += line
        started = _HERE_DOCUMENT.search(line)
        if ends_with:
            ends_with = "" if line.strip() == ends_with else ends_with
        elif started:
            ends_with = started[1]
        if not ends_with and current.strip() and not _goes_on(current):
            found.append(current)
            current = ""
    return [*found, current] if current.strip() else found


def _goes_on(command: str) -> bool:
    """Whether the last line is not the end of a command."""
    quote = ""
    text = re.sub(r"\\\n", "\0", command)
    for number, each in enumerate(text):
        if quote:
            quote = "" if each == quote and text[number - 1] != "\\" else quote
        elif each in "'\"":
            quote = each
        elif each == "#" and (not number or text[number - 1].isspace()):
            return text.rstrip("\n").endswith("\0")
    return bool(quote) or text.endswith("\0") or text.rstrip().endswith("|")


@frozen
class PageScript:
    """
    How a page is run: one bash script, and the settings of the server, the clients and the services that it needs.

    In the settings ``$FOLDER`` is the working folder of the script, and variables of the services are named alike.
    """

    script: str
    settings: str
    clients: tuple[str, ...]
    services: tuple[str, ...]
    not_run: tuple[str, ...] = field(default=())


def script_of(page: str) -> PageScript:
    """
    The script of a page with its blocks in their places.

    Raises AssertionError if it does not use each block of the page once, or renames what no block below has.
    """
    blocks = iter([commands_of(each) for each in blocks_of(page)])
    left: list[str] = []
    renamed: dict[str, str] = {}
    unused: set[str] = set()
    clients: list[str] = []
    services: list[str] = []
    parts, settings, not_run = [], [], []
    into = parts
    for line in (PAGES / f"{page}.sh").read_text("utf-8").splitlines(keepends=True):
        told = re.fullmatch(r"#: (settings|here|clients|beside|block|next|not run:)(.*)\n", line)
        if told is None:
            assert not line.startswith("#:"), line
            into.append(line)
            continue
        into = settings if told[1] == "settings" else parts
        match told[1]:
            case "here":
                old, new = told[2].strip().split(" = ", 1)
                renamed[old] = new
                unused.add(old)
            case "clients":
                clients += told[2].split()
            case "beside":
                services += told[2].split()
            case "block" | "not run:" | "next":
                left = left or _next(blocks, page)
                count = int(told[2]) if told[1] == "next" else len(left)
                assert 0 < count <= len(left), f"{page}: {line}"
                if told[1] == "not run:":
                    assert told[2].strip(), f"{page}: a block that is not run has no reason"
                    not_run.append(told[2].strip())
                else:
                    parts += [placed(each, renamed, unused) for each in left[:count]]
                left = left[count:]
    assert not left, f"{page}: not in its script: {left}"
    assert not (rest := list(blocks)), f"{page}: not in its script: {rest}"
    assert not unused, f"{page}: its script renames what is not there: {unused}"
    return PageScript("".join(parts), "".join(settings), tuple(clients), tuple(services), tuple(not_run))


def _next(blocks: Iterator[list[str]], page: str) -> list[str]:
    found = next(blocks, None)
    assert found, f"{page}: its script has more blocks than the page"
    return found


def placed(text: str, renamed: Mapping[str, str], unused: set[str] | None = None) -> str:
    """
    A command with the names that things have here; of a name in capitals only whole words.

    A name that it has is taken out of ``unused``.
    """
    for old, new in renamed.items():
        pattern = rf"\b{re.escape(old)}\b" if re.fullmatch("[A-Z]+", old) else re.escape(old)
        text, count = re.subn(pattern, lambda _, new=new: new, text)  # type: ignore[misc]
        if count and unused is not None:
            unused.discard(old)
    return text
