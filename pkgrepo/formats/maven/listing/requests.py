"""Answers GET and HEAD of directories."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.listing.entries import Cursor, Directory, ListingTurns, find_directory, read_page
from pkgrepo.formats.maven.listing.rendering import HtmlPage, JsonPage, Page, reference
from pkgrepo.formats.maven.paths import Directory as DirectoryPath
from pkgrepo.gateway.content import document_cache_control
from pkgrepo.gateway.long_bodies import deliver_pieces
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import best_media_type, names_media_type
from pkgrepo.http.answers import Answer, Content, Refusal
from pkgrepo.http.request import Request
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.storage.catalog.packages.tree import file_or_folder

HTML: Final = b"text/html"
JSON: Final = b"application/json"

_HEADERS: Final = (
    (b"Content-Security-Policy", b"default-src 'none'"),
    (b"Vary", b"Accept"),
)


class ListingRequests:
    """Listings of one repository: of what it has, of what a proxy has kept, of what all members have."""

    def __init__(self, services: Services, repository: Repository, turns: ListingTurns) -> None:
        self._services = services
        self._repository = repository
        self._turns = turns

    async def get(self, request: Request, target: DirectoryPath) -> Answer:
        """
        A directory, as HTML, or as JSON for clients that prefer it.

        :raises NotFound: there is no such directory; :raises Refusal: too many listings are asked for at the same time
        """
        await self._admit(request, target.path)
        directory = await self._find(target.path)
        if directory is None:
            raise NotFound("directory", target.path)
        accept = request.header(b"accept")
        wants_json = names_media_type(accept, JSON) and best_media_type(accept, (HTML, JSON)) == JSON
        page = JsonPage() if wants_json else HtmlPage()
        try:
            listing = await render_listing(
                self._services.catalog, directory, page, self._turns, gone=lambda: request.gone
            )
        except QueueFull:
            raise Refusal(503, "too many directories are listed at the same time; try again", "busy") from None
        return Answer(
            body=listing.body,
            content_type=page.content_type,
            etag=listing.etag,
            headers=((b"Cache-Control", document_cache_control(self._repository)), *_HEADERS),
        )

    async def moved(self, request: Request, path: str) -> Answer | None:
        """
        A redirect to the address with a slash, if a directory is at a path where no file is, and a browser asks.

        Build tools ask for directories with a slash, and must not take a listing for the file that they miss.
        """
        if not names_media_type(request.header(b"accept"), HTML):
            return None
        for each in self._leaves():
            if await self._services.catalog.look(file_or_folder, each.id, path) is True:
                location = reference(path.rpartition("/")[2], folder=True).encode("ascii")
                return Answer(302, headers=((b"Location", location), (b"Cache-Control", b"no-cache")))
        return None

    async def _find(self, path: str) -> Directory | None:
        leaves = self._leaves()
        hosted = [each.id for each in leaves if each.type is RepositoryType.HOSTED]
        others = [each.id for each in leaves if each.type is not RepositoryType.HOSTED]
        found: Directory | None = await self._services.catalog.scan(find_directory, path, hosted, others)
        return found

    def _leaves(self) -> list[Repository]:
        if self._repository.type is not RepositoryType.VIRTUAL:
            return [self._repository]
        return [each for each in self._services.proxy.resolver.flat_members(self._repository) if each.active]

    async def _admit(self, request: Request, path: str) -> Identity:
        """
        The caller, who may read what is below a directory: as a group, an artifact, or a version of an artifact.

        :raises Forbidden: none of these; for the other errors see L{Access.require}
        """
        access = self._services.access
        identity = await access.identify(request)
        for key in _permission_keys(path):
            if await access.may(identity, Action.READ, self._repository, key):
                await access.require(identity, Action.READ, self._repository, key)
                return identity
        await access.require(identity, Action.READ, self._repository)
        return identity


def _permission_keys(path: str) -> list[str]:
    """The names by which the permission for a directory is asked, besides that for the whole repository."""
    keys: list[str] = []
    while "/" in path and len(keys) < 3:
        if not keys:
            keys.append(path.replace("/", "."))
        parent, _, name = path.rpartition("/")
        keys.append(f"{parent.replace('/', '.')}:{name}")
        path = parent
    return keys


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
