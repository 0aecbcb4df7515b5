"""Answers GET and HEAD of directories: what is listed of the members, as the caller may see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import evolve

from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.directories import Directory, Member, find_directory, read_page
from pkgrepo.formats.maven.paths import Directory as DirectoryPath
from pkgrepo.gateway.responses.directory_pages import (
    HTML,
    Cursor,
    Entry,
    answer_directory,
    busy,
    moved_to_folder,
)
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.packages.tree import file_or_folder


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
        raise busy() from None
    if directory is None:
        raise NotFound("directory", target.path)
    pages = partial(render_page, context.services.catalog, directory)
    return await answer_directory(request, context.repository, target.path, pages, context.caches.listing_turns)


async def render_page(
    catalog: ICatalog, directory: Directory, cursor: Cursor, size: int, render: Callable[[Sequence[Entry]], bytes]
) -> tuple[bytes, Cursor | None]:
    """The entries after a position, rendered on the thread that reads them, and the next position."""

    def read(r: Reader) -> tuple[bytes, Cursor | None]:
        entries, following = read_page(r, directory, cursor, size)
        return render(entries), following

    found: tuple[bytes, Cursor | None] = await catalog.scan(read)
    return found


async def find_moved(context: MavenContext, request: Request, path: str) -> Response | None:
    """
    A redirect to the address with a slash, if a directory is at a path where no file is, and a browser asks.

    Build tools ask for directories with a slash, and must not take a listing for the file that they miss.
    """
    if not names_media_type(request.header(b"accept"), HTML):
        return None
    for each in active_members(context.services, context.repository):
        if await context.services.catalog.look(file_or_folder, each.id, path) is True:
            return moved_to_folder(path)
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
