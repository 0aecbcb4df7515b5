"""
Directories as HTML or JSON.

Ivy and Gradle parse the HTML as that of a web server: an ``a`` element for each entry, whose text is the relative
address, with a slash behind folders, and ``../`` in front.

A listing needs little memory whatever the number of entries. It is rendered once to know its length and validator. A
large one, see L{ListingSizes}, is rendered again while it is sent, as fast as the client reads; if the directory has
changed meanwhile, the connection is aborted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from html import escape
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

import msgspec
from attrs import frozen
from twisted.internet import reactor as _reactor

from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.answering.negotiation import best_media_type, names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Refusal, Response
from pkgrepo.model import Repository

HTML: Final = b"text/html"
JSON: Final = b"application/json"
_POLICY: Final = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS: Final = ((b"Content-Security-Policy", _POLICY), (b"Vary", b"Accept"))

AT_ONCE: Final = 8  # listings whose length is being found out
MOST_WAITING: Final = 100
PAGES_AT_ONCE: Final = 2  # also of listings that are being sent, at the pace of their clients


class ListingTurns:
    """
    The permits of all listings.

    ``whole`` is for the first reading, which clients wait for; those that would wait too long are refused. ``pages``
    are for each page, so that slow clients hold nothing. Archives take long: they are counted, and some are refused.
    """

    def __init__(self, *, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        reactor: Any = _reactor
        self.archives: Counter[str] = Counter()  # that are being sent, by the address of the client
        self.whole = FairSemaphore(at_once, reactor, most_waiting=most_waiting)
        self.pages = FairSemaphore(PAGES_AT_ONCE, reactor)


class Entry(NamedTuple):
    """A folder, or a file with its size in bytes and its time; both are None for what is computed."""

    name: str
    folder: bool = False
    size: int | None = None
    modified_at: datetime | None = None


@frozen
class Cursor:
    """
    The position after a page: first come folders, then files.

    ``after`` is the name of the last one, empty at the beginning of either.
    """

    files: bool = False
    after: str = ""


class Pages(Protocol):
    """Reads the entries of a directory, a page at a time."""

    def __call__(
        self, cursor: Cursor, size: int, render: Callable[[Sequence[Entry]], bytes], /
    ) -> Awaitable[tuple[bytes, Cursor | None]]:
        """What ``render`` makes of up to ``size`` entries after a position, and the next one; None at the end."""


@frozen
class ListingSizes:
    """How listings are rendered."""

    page: int = 250  # folders or files that are read and rendered in one call of a thread, in some 10 ms
    kept: int = 1024 * 1024  # bytes of a listing that is rendered once; 10,000 versions have 500 KiB


SIZES: Final = ListingSizes()


@frozen
class Listing:
    """A rendered directory: its body, and a quoted validator."""

    body: bytes | Content
    etag: bytes


async def render_listing(
    path: str,
    pages: Pages,
    page: Page,
    turns: ListingTurns,
    *,
    gone: Callable[[], bool] = lambda: False,
    sizes: ListingSizes = SIZES,
) -> Listing:
    """
    Render the directory at a path in a form; the rest is left out when the client has ``gone``.

    :raises QueueFull: too many wait for their turns
    """
    pieces = partial(_pieces, path, pages, page, turns, sizes.page)
    kept: list[bytes] = []
    size = 0
    digest = hashlib.sha256()
    async with turns.whole.hold():
        async for piece in pieces():
            if gone():
                break
            size += len(piece)
            digest.update(piece)
            if size <= sizes.kept:
                kept.append(piece)
            else:
                kept.clear()

    deliver = partial(deliver_pieces, pieces)
    etag = b'"%s"' % digest.hexdigest()[:32].encode("ascii")
    return Listing(b"".join(kept) if size <= sizes.kept else Content(size, deliver=deliver), etag)


async def _pieces(path: str, pages: Pages, page: Page, turns: ListingTurns, size: int) -> AsyncIterator[bytes]:
    yield page.head(path)
    first = True
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        async with turns.pages.hold():
            piece, cursor = await pages(cursor, size, partial(page.entries, first))
        yield piece
        first = first and not piece
    yield page.tail


_SAFE: Final = "+@$,;=!*()~"  # RFC 3986 3.3: a colon would make the first segment a scheme


@frozen
class Page:
    """
    A form of the response: what comes before the entries of a directory with a path, the entries, and what follows.

    ``entries`` are told whether none comes before them.
    """

    content_type: bytes
    head: Callable[[str], bytes]
    entries: Callable[[bool, Sequence[Entry]], bytes]
    tail: bytes


def _html_head(path: str) -> bytes:
    title = f"Index of /{escape(path)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body><h1>{title}</h1><pre>\n<a href="../">../</a>\n'
    ).encode()


def _html_entries(_first: bool, entries: Sequence[Entry]) -> bytes:
    return "".join(map(_line, entries)).encode()


def _json_head(path: str) -> bytes:
    return b'{"path":' + msgspec.json.encode(path) + b',"entries":['


def _json_entries(first: bool, entries: Sequence[Entry]) -> bytes:
    if not entries:
        return b""
    return (b"" if first else b",") + msgspec.json.encode([_record(each) for each in entries])[1:-1]


# For people, and for clients that find versions without metadata; and for programs that accept JSON by name.
HTML_PAGE: Final = Page(b"text/html; charset=utf-8", _html_head, _html_entries, b"</pre></body></html>\n")
JSON_PAGE: Final = Page(b"application/json", _json_head, _json_entries, b"]}")


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


def wants_json(request: Request) -> bool:
    """Whether a client asks for JSON by name, and prefers it to a page."""
    accept = request.header(b"accept")
    return names_media_type(accept, JSON) and best_media_type(accept, (HTML, JSON)) == JSON


async def answer_directory(
    request: Request, repository: Repository, path: str, pages: Pages, turns: ListingTurns
) -> Response:
    """
    A directory, as HTML, or as JSON for clients that prefer it.

    :raises Refusal: too many listings are asked for at the same time
    """
    page = JSON_PAGE if wants_json(request) else HTML_PAGE
    try:
        listing = await render_listing(path, pages, page, turns, gone=lambda: request.gone)
    except QueueFull:
        raise busy() from None
    return Response(
        body=listing.body,
        content_type=page.content_type,
        etag=listing.etag,
        headers=((b"Cache-Control", document_cache_control(repository)), *_HEADERS),
    )


def busy(what: str = "directories are listed") -> Refusal:
    """The refusal of one listing, or of one archive, too many."""
    return Refusal(503, f"too many {what} at the same time; try again", "busy")


def moved_to_folder(path: str) -> Response:
    """The redirect to the address with a slash at the end."""
    location = reference(path.rpartition("/")[2], folder=True).encode("ascii")
    return Response(302, headers=((b"Location", location), (b"Cache-Control", b"no-cache")))
