"""
Answers GET and HEAD of directories with HTML or JSON.

Ivy and Gradle parse the HTML as that of a web server: an ``a`` element for each entry, whose text is the relative
address, with a slash behind folders, and ``../`` in front.

A listing needs little memory whatever the number of entries. It is rendered once to know its length and validator. A
large one, see L{ListingSizes}, is rendered again while it is sent, as fast as the client reads; if the directory has
changed meanwhile, the connection is aborted.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Final
from urllib.parse import quote

import msgspec
from attrs import evolve, frozen

from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.caches import ListingTurns, MavenContext
from pkgrepo.formats.maven.directories import Cursor, Directory, Entry, Member, find_directory, read_page
from pkgrepo.formats.maven.paths import Directory as DirectoryPath
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import best_media_type, names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Refusal, Response
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.packages.tree import file_or_folder

HTML: Final = b"text/html"
JSON: Final = b"application/json"

_HEADERS: Final = ((b"Content-Security-Policy", b"default-src 'none'"), (b"Vary", b"Accept"))


async def list_directory(context: MavenContext, request: Request, target: DirectoryPath) -> Response:
    """
    A directory, as HTML, or as JSON for clients that prefer it.

    :raises NotFound: there is no such directory; :raises Refusal: too many listings are asked for at the same time
    """
    await _admit(context, request, target.path)
    try:
        async with context.caches.listing_turns.whole.hold():
            directory = await find_listed(context.services, context.repository, target.path)
    except QueueFull:
        raise _busy() from None
    if directory is None:
        raise NotFound("directory", target.path)
    accept = request.header(b"accept")
    wants_json = names_media_type(accept, JSON) and best_media_type(accept, (HTML, JSON)) == JSON
    page = JSON_PAGE if wants_json else HTML_PAGE
    try:
        listing = await render_listing(
            context.services.catalog, directory, page, context.caches.listing_turns, gone=lambda: request.gone
        )
    except QueueFull:
        raise _busy() from None
    return Response(
        body=listing.body,
        content_type=page.content_type,
        etag=listing.etag,
        headers=((b"Cache-Control", document_cache_control(context.repository)), *_HEADERS),
    )


def _busy() -> Refusal:
    return Refusal(503, "too many directories are listed at the same time; try again", "busy")


async def find_moved(context: MavenContext, request: Request, path: str) -> Response | None:
    """
    A redirect to the address with a slash, if a directory is at a path where no file is, and a browser asks.

    Build tools ask for directories with a slash, and must not take a listing for the file that they miss.
    """
    if not names_media_type(request.header(b"accept"), HTML):
        return None
    for each in active_members(context.services, context.repository):
        if await context.services.catalog.look(file_or_folder, each.id, path) is True:
            location = reference(path.rpartition("/")[2], folder=True).encode("ascii")
            return Response(302, headers=((b"Location", location), (b"Cache-Control", b"no-cache")))
    return None


async def find_listed(services: Services, repository: Repository, path: str) -> Directory | None:
    """
    The directory at a path in a repository, or in the members of a virtual one; None if none has it.

    :raises RuleRefused: it is that of a version, and rules hide that in every member
    """
    members = {each.id: each for each in active_members(services, repository)}
    hosted = [key for key, each in members.items() if each.type is RepositoryType.HOSTED]
    others = [key for key, each in members.items() if each.type is not RepositoryType.HOSTED]
    found: Directory | None = await services.catalog.scan(find_directory, path, hosted, others)
    if found is None or (found.package is None and found.version is None):
        return found
    shown: list[Member] = []
    refused: RuleRefused | None = None
    for each in found.members:
        member = members[each.repository_id]
        flat = services.proxy.resolver.flat_member(repository, member)
        versions, _ = await _hidden(services, flat, found.package)
        of_version, files = await _hidden(services, flat, None if found.version is None else found.version[0])
        if found.version is not None and found.version[1] in of_version:
            refused = refusal(":".join(found.version), of_version[found.version[1]], repository, member)
        else:
            shown.append(evolve(each, hidden_folders=versions.keys(), hidden_files=files.keys()))
    if refused is not None and not shown:
        raise refused
    return evolve(found, members=tuple(shown))


async def _hidden(
    services: Services, flat: FlatMember, package: str | None
) -> tuple[Mapping[str, Verdict], Mapping[str, Verdict]]:
    """What rules hide of a package (a key) that a member has: versions, and files by path."""
    judge = None if package is None else await services.proxy.judges.of(flat, package)
    if judge is None or package is None:
        return {}, {}

    def find(r: Reader) -> tuple[Mapping[str, Verdict], Mapping[str, Verdict]]:
        there = find_package(r, flat.repository.id, package)
        return ({}, {}) if there is None else judge.hidden_files(r, there.id)

    found: tuple[Mapping[str, Verdict], Mapping[str, Verdict]] = await services.catalog.scan(find)
    return found


def active_members(services: Services, repository: Repository) -> list[Repository]:
    """The repository alone, or those with packages of their own behind a virtual one."""
    if repository.type is not RepositoryType.VIRTUAL:
        return [repository]
    return [each for each in services.proxy.resolver.flat_members(repository) if each.active]


async def _admit(context: MavenContext, request: Request, path: str) -> Identity:
    """
    The caller, who may read what is below a directory: as a group, an artifact, or a version of an artifact.

    :raises Forbidden: none of these; for the other errors see L{Access.require}
    """
    repository = context.repository
    access = context.services.access
    identity = await access.identify(request)
    for key in _permission_keys(path):
        if await access.authorizer.may(identity, Action.READ, repository, key):
            await access.require(identity, Action.READ, repository, key)
            return identity
    await access.require(identity, Action.READ, repository)
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
    catalog: ICatalog,
    directory: Directory,
    page: Page,
    turns: ListingTurns,
    *,
    gone: Callable[[], bool] = lambda: False,
    sizes: ListingSizes = SIZES,
) -> Listing:
    """
    Render a directory in a form; the rest is left out when the client has ``gone``.

    :raises QueueFull: too many wait for their turns
    """
    pieces = partial(_pieces, catalog, directory, page, turns, sizes.page)
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


async def _pieces(
    catalog: ICatalog, directory: Directory, page: Page, turns: ListingTurns, size: int
) -> AsyncIterator[bytes]:
    yield page.head(directory.path)
    first = True
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        async with turns.pages.hold():
            piece, cursor = await catalog.scan(_render_page, directory, page, cursor, size, first)
        yield piece
        first = first and not piece
    yield page.tail


def _render_page(
    r: Reader, directory: Directory, page: Page, cursor: Cursor, size: int, first: bool
) -> tuple[bytes, Cursor | None]:
    """The entries after a position, rendered on the thread that reads them, and the next position."""
    entries, following = read_page(r, directory, cursor, size)
    return page.entries(entries, first), following


_SAFE: Final = "+@$,;=!*()~"  # RFC 3986 3.3: a colon would make the first segment a scheme


@frozen
class Page:
    """
    A form of the response: what comes before the entries of a directory with a path, the entries, and what follows.

    ``entries`` is told whether none comes before them.
    """

    content_type: bytes
    head: Callable[[str], bytes]
    entries: Callable[[Sequence[Entry], bool], bytes]
    tail: bytes


def _html_head(path: str) -> bytes:
    title = f"Index of /{escape(path)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f'<body><h1>{title}</h1><pre>\n<a href="../">../</a>\n'
    ).encode()


def _html_entries(entries: Sequence[Entry], _first: bool) -> bytes:
    return "".join(map(_line, entries)).encode()


def _json_head(path: str) -> bytes:
    return b'{"path":' + msgspec.json.encode(path) + b',"entries":['


def _json_entries(entries: Sequence[Entry], first: bool) -> bytes:
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
