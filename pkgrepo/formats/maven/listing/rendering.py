"""
Renders a directory as HTML or JSON, piece by piece.

Ivy and Gradle parse the HTML as that of a web server: an ``a`` element for each entry, whose text is the relative
address, with a slash behind folders, and ``../`` in front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import Final
from urllib.parse import quote

import msgspec

from .entries import Entry

_SAFE: Final = "+@$,;=!*()~"  # RFC 3986 3.3: a colon would make the first segment a scheme


class Page(ABC):
    """A form of the answer."""

    content_type: bytes

    @abstractmethod
    def head(self, path: str) -> bytes:
        """What comes before the entries of a directory."""

    @abstractmethod
    def entries(self, entries: Sequence[Entry], first: bool) -> bytes:
        """Some entries; ``first`` says that none comes before them."""

    @abstractmethod
    def tail(self) -> bytes:
        """What comes behind the entries."""


class HtmlPage(Page):
    """For people, and for clients that find versions without metadata."""

    content_type = b"text/html; charset=utf-8"

    def head(self, path: str) -> bytes:
        """See L{Page.head}."""
        title = f"Index of /{escape(path)}"
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
            f'<body><h1>{title}</h1><pre>\n<a href="../">../</a>\n'
        ).encode()

    def entries(self, entries: Sequence[Entry], first: bool) -> bytes:  # noqa: ARG002 - has no separators
        """See L{Page.entries}."""
        return "".join(map(_line, entries)).encode()

    def tail(self) -> bytes:
        """See L{Page.tail}."""
        return b"</pre></body></html>\n"


class JsonPage(Page):
    """For programs that accept it by name."""

    content_type = b"application/json"

    def head(self, path: str) -> bytes:
        """See L{Page.head}."""
        return b'{"path":' + msgspec.json.encode(path) + b',"entries":['

    def entries(self, entries: Sequence[Entry], first: bool) -> bytes:
        """See L{Page.entries}."""
        if not entries:
            return b""
        return (b"" if first else b",") + msgspec.json.encode([_record(each) for each in entries])[1:-1]

    def tail(self) -> bytes:
        """See L{Page.tail}."""
        return b"]}"


def reference(name: str, *, folder: bool) -> str:
    """The relative address of an entry, from its directory."""
    return quote(name, safe=_SAFE) + ("/" if folder else "")


def _line(entry: Entry) -> str:
    shown = escape(entry.name) + ("/" if entry.folder else "")
    line = f'<a href="{escape(reference(entry.name, folder=entry.folder))}">{shown}</a>'
    if entry.modified_at is not None:
        line += f"  {entry.modified_at:%Y-%m-%d %H:%M}  {entry.size}"
    return f"{line}\n"


def _record(entry: Entry) -> dict[str, object]:
    record: dict[str, object] = {"name": entry.name, "kind": "folder" if entry.folder else "file"}
    if entry.modified_at is not None:
        record |= {"size": entry.size, "modified_at": entry.modified_at}
    return record
