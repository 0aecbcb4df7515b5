"""
The body of a listing, which needs little memory whatever the number of entries.

It is rendered once to know its length and validator. What is larger than ``KEPT`` is rendered again while it is sent,
as fast as the client reads; if the directory has changed meanwhile, the connection is aborted.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IPushProducer
from zope.interface import implementer

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

    async def deliver(consumer: IConsumer, start: int, end: int) -> None:
        await _deliver(_pieces(catalog, directory, page, turns), consumer, start, end)

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


async def _deliver(pieces: AsyncIterator[bytes], consumer: IConsumer, start: int, end: int) -> None:
    pace = _Pace()
    consumer.registerProducer(pace, True)
    try:
        at = 0
        async for piece in pieces:
            await pace.wait()
            if pace.stopped:
                return
            consumer.write(piece[max(0, start - at) : max(0, end - at)])
            at += len(piece)
    finally:
        consumer.unregisterProducer()


@implementer(IPushProducer)
class _Pace:
    """Waits while the transport's write buffer is full."""

    def __init__(self) -> None:
        self.stopped = False
        self._paused = False
        self._waiting: Deferred[None] | None = None

    async def wait(self) -> None:
        """Return when the consumer takes bytes, or takes no more."""
        while self._paused and not self.stopped:
            self._waiting = Deferred()
            await self._waiting

    def pauseProducing(self) -> None:
        """See L{IPushProducer}."""
        self._paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer}."""
        self._paused = False
        self._go_on()

    def stopProducing(self) -> None:
        """See L{IPushProducer}."""
        self.stopped = True
        self._go_on()

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)
