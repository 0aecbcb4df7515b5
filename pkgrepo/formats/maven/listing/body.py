"""
The body of a listing, which needs little memory whatever the number of entries.

It is rendered once to know its length and validator. What is larger than ``KEPT`` is rendered again while it is sent,
as fast as the client reads; if the directory has changed meanwhile, the connection is aborted.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.gateway.answers.pieces import deliver_pieces
from pkgrepo.http.answers import Content
from pkgrepo.interfaces import ICatalog, Reader

from .entries import Cursor, Directory, read_page
from .rendering import Page
from .turns import ListingTurns

PAGE: Final = 250  # folders or files that are read and rendered in one call of a thread, in some 10 ms
KEPT: Final = 1024 * 1024  # bytes; 10,000 versions have 500 KiB


@frozen
class Listing:
    """A rendered directory: its body, and a quoted validator."""

    body: bytes | Content
    etag: bytes


async def render_listing(
    catalog: ICatalog,
    directory: Directory,
    page: Page,
    turns: ListingTurns,
    *,
    gone: Callable[[], bool] = lambda: False,
) -> Listing:
    """
    Render a directory in a form; the rest is left out when the client has ``gone``.

    :raises QueueFull: too many wait for their turns
    """
    kept: list[bytes] = []
    size = 0
    digest = hashlib.sha256()
    async with turns.whole.hold():
        async for piece in _pieces(catalog, directory, page, turns):
            if gone():
                break
            size += len(piece)
            digest.update(piece)
            if size <= KEPT:
                kept.append(piece)
            else:
                kept.clear()

    deliver = partial(deliver_pieces, partial(_pieces, catalog, directory, page, turns))
    etag = b'"%s"' % digest.hexdigest()[:32].encode("ascii")
    return Listing(b"".join(kept) if size <= KEPT else Content(size, deliver=deliver), etag)


async def _pieces(catalog: ICatalog, directory: Directory, page: Page, turns: ListingTurns) -> AsyncIterator[bytes]:
    yield page.head(directory.path)
    first = True
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        async with turns.pages.hold():
            piece, cursor = await catalog.scan(_render_page, directory, page, cursor, first)
        yield piece
        first = first and not piece
    yield page.tail()


def _render_page(
    r: Reader, directory: Directory, page: Page, cursor: Cursor, first: bool
) -> tuple[bytes, Cursor | None]:
    """The entries after a position, rendered on the thread that reads them, and the next position."""
    entries, following = read_page(r, directory, cursor, PAGE)
    return page.entries(entries, first), following
