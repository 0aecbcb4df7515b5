"""Answers GET and HEAD of folders: a page with the entries, or an archive of all that is below."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qs

from attrs import evolve, frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.raw.configuration import patterns_of
from pkgrepo.formats.raw.paths import UNVERSIONED, package_of_folder, version_of
from pkgrepo.formats.raw.proxied import VERSIONS
from pkgrepo.gateway.responses.directory_pages import Cursor, Entry, ListingTurns, answer_directory
from pkgrepo.gateway.responses.folder_archives import KINDS, MOST_ZIPPED, answer_archive
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, File, Repository, RepositoryType
from pkgrepo.proxy.format import merge_versions
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.refusals import refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.packages.tree import count_below, file_or_folder, list_folders, list_tree
from pkgrepo.storage.catalog.packages.versions import sorted_texts

FolderContext = Context[ListingTurns]
PAGE: Final = 250  # entries that are read at once for an archive


@frozen
class _Level:
    """A page of a folder: names of folders, then files with the keys of their packages; and the next position."""

    folders: Sequence[str]
    files: Sequence[tuple[File, str]]
    following: Cursor | None


@frozen
class _Folder:
    """
    A folder at a path, and what is shown there: what ``members`` have below it, and ``versions`` of upstreams.

    ``hidden`` are the versions that rules hide, by the id of a member.
    """

    path: str
    members: Sequence[Repository]
    versions: Sequence[str] = ()
    hidden: Mapping[int, Mapping[str, Verdict]] = MappingProxyType({})


async def is_folder(context: FolderContext, path: str) -> bool:
    """Whether there is anything below a path."""
    ids = [each.id for each in _members(context.services, context.repository)]
    found: bool = await context.services.catalog.scan(_is_folder, ids, path)
    return found


async def get_folder(context: FolderContext, request: Request, path: str) -> Response:
    """
    The page of a folder, or with ``?archive=`` an archive of what is kept below it.

    :raises NotFound: there is nothing below the path; :raises Invalid: there is no such kind of archive
    :raises UpstreamFailed: it is not known which versions of a package there are
    """
    services = context.services
    package = package_of_folder(path, patterns_of(context.repository))
    identity = await context.admit(request, Action.READ, package)
    folder = _Folder(path, _members(services, context.repository))
    if package is not None:
        folder = await _of_package(context, folder, package)
    if path and not folder.versions and not await is_folder(context, path):
        raise NotFound("folder", path)
    query = parse_qs(request.raw_query.decode("latin-1"), max_num_fields=16)
    kind = query.get("archive", [""])[-1]
    if not kind:
        return await answer_directory(
            request, context.repository, path, partial(_read_page, context, folder), context.caches
        )
    if kind not in KINDS:
        raise Invalid(f"an archive is one of {', '.join(KINDS)}", "archive")
    if kind == "zip" and await services.catalog.scan(_count, folder) > MOST_ZIPPED:
        raise Invalid(f"a zip file has at most {MOST_ZIPPED} files here; take tar.gz", "archive")
    cut, client = len(path) + bool(path), request.client_address

    async def walk() -> AsyncIterator[tuple[str, File]]:
        async for file in _walk(context, folder):
            yield file.path[cut:], file
            services.downloads.record(file, identity, client)

    return answer_archive(services.files, services.pools.cpu, kind, walk, context.caches.archives, client)


async def _of_package(context: FolderContext, folder: _Folder, key: str) -> _Folder:
    """
    A folder that belongs to a package (a key), without what rules hide of it. That of the package itself has the
    versions of upstreams, too, as far as these list them.

    :raises NotFound: it is that of the package, of which nothing is shown
    :raises RuleRefused: it is that of a version, and rules hide that in every member
    """
    services, repository = context.services, context.repository
    resolver = services.proxy.resolver
    ids = await _serving(services, repository, key)
    members = [each for each in folder.members if ids is None or each.id in ids]
    hidden: dict[int, Mapping[str, Verdict]] = {}
    for each in members:
        flat = resolver.flat_member(repository, each)
        judge = None if flat.policy is None else await services.proxy.judges.of(flat, key)
        if judge is not None:
            hidden[each.id] = await services.catalog.scan(_hidden_versions, judge, each.id, key)
    if folder.path == key:
        listed = await _versions(context, key)
        if not listed and any(hidden.values()):
            every = {each.id: hidden.get(each.id, {}) for each in members}
            if not await services.catalog.scan(_has_shown, every, key):
                raise NotFound("folder", key)
        return _Folder(key, members, listed, hidden)
    version = version_of(key, f"{folder.path}/")
    refused = [each for each in members if version in hidden.get(each.id, ())]
    if refused and len(refused) == len(members):
        raise refusal(f"{key} {version}", hidden[refused[0].id][version], repository, refused[0])
    return _Folder(folder.path, [each for each in members if each not in refused])


async def _versions(context: FolderContext, key: str) -> Sequence[str]:
    """The versions of a package (a key) that have folders; none where no upstream has the page of the package."""
    resolver = context.services.proxy.resolver
    try:
        members = await resolver.members(context.repository, key, Trace())
        found = merge_versions(await resolver.parts(members, key, VERSIONS))
    except NotFound:
        return ()
    return sorted({*found} - {UNVERSIONED}, key=_as_folder)


def _hidden_versions(r: Reader, judge: Judge, repository_id: int, key: str) -> Mapping[str, Verdict]:
    package = find_package(r, repository_id, key)
    return {} if package is None else judge.hidden_files(r, package.id)[0]


def _has_shown(r: Reader, hidden: Mapping[int, Mapping[str, Verdict]], key: str) -> bool:
    """Whether members, by their ids, have a version that is not hidden in them."""
    for repository_id, texts in hidden.items():
        package = find_package(r, repository_id, key)
        if package is not None and any(text not in texts for _, text in sorted_texts(r, package.id)):
            return True
    return False


async def _read_page(
    context: FolderContext, folder: _Folder, cursor: Cursor, size: int, render: Callable[[Sequence[Entry]], bytes]
) -> tuple[bytes, Cursor | None]:
    level = await _read_level(context, folder, cursor, size)
    entries = [Entry(name, folder=True) for name in level.folders]
    entries += [Entry(file.path.rpartition("/")[2], False, file.size, file.created_at) for file, _ in level.files]
    return render(entries), level.following


async def _walk(context: FolderContext, folder: _Folder) -> AsyncIterator[File]:
    """All files that are kept below a folder."""
    path = folder.path
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        async with context.caches.pages.hold():
            level = await _read_level(context, evolve(folder, versions=()), cursor, PAGE)
        cursor = level.following
        for file, _ in level.files:
            yield file
        for name in level.folders:
            async for each in _walk(context, _Folder(f"{path}/{name}" if path else name, folder.members)):
                yield each


async def _read_level(context: FolderContext, folder: _Folder, cursor: Cursor, size: int) -> _Level:
    """The entries of a folder after a position, without the files that rules hide, or of which others are served."""
    services, repository = context.services, context.repository
    members = {each.id: each for each in folder.members}
    level: _Level = await services.catalog.scan(_list, folder, cursor, size)
    judges: dict[tuple[int, str], Judge | None] = {}
    served: dict[str, frozenset[int] | None] = {}
    for file, key in level.files:
        at = file.repository_id, key
        if at not in judges:
            flat = services.proxy.resolver.flat_member(repository, members[file.repository_id])
            judges[at] = None if flat.policy is None else await services.proxy.judges.of(flat, key)
        if key not in served:
            served[key] = await _serving(services, repository, key)
    files: Sequence[tuple[File, str]] = await services.catalog.scan(_shown, level.files, judges, served)
    return _Level(level.folders, files, level.following)


async def _serving(services: Services, repository: Repository, key: str) -> frozenset[int] | None:
    """The ids of the members whose files of a package (a key) are served; None for all."""
    if repository.type is not RepositoryType.VIRTUAL:
        return None
    owners = await services.proxy.resolver.owners(repository, key, Trace())
    return (
        None
        if owners.asks_proxies and not owners.is_taken
        else frozenset(each.repository.id for each in (owners.members if owners.merges else owners.owning))
    )


def _members(services: Services, repository: Repository) -> list[Repository]:
    """The repository alone, or those with packages of their own behind a virtual one."""
    if repository.type is not RepositoryType.VIRTUAL:
        return [repository.live]
    return [each for each in services.proxy.resolver.flat_members(repository) if each.active]


def _count(r: Reader, folder: _Folder) -> int:
    return sum(count_below(r, each.id, folder.path, MOST_ZIPPED + 1) for each in folder.members)


def _is_folder(r: Reader, ids: Sequence[int], path: str) -> bool:
    return any(file_or_folder(r, each, path) is True for each in ids)


def _list(r: Reader, folder: _Folder, cursor: Cursor, size: int) -> _Level:
    if not cursor.files:
        after = _as_folder(cursor.after) if cursor.after else ""
        kept = [_folders(r, each.id, folder, cursor.after, size) for each in folder.members]
        names = _first(size, [*kept, [each for each in folder.versions if _as_folder(each) > after]], _as_folder)
        return _Level(names, (), Cursor(after=names[-1]) if len(names) == size else Cursor(files=True))
    listed = [
        list_tree(r, each.id, folder.path, after=f"f/{cursor.after}", limit=size).files for each in folder.members
    ]
    found: list[File] = _first(size, listed, lambda file: file.path)
    following = Cursor(files=True, after=found[-1].path.rpartition("/")[2]) if len(found) == size else None
    keys = [package_and_version_of_file(r, file.id) for file in found]
    return _Level((), [(file, at[0]) for file, at in zip(found, keys, strict=True) if at is not None], following)


def _folders(r: Reader, repository_id: int, folder: _Folder, after: str, limit: int) -> list[str]:
    """The next folders of one member; one that is hidden makes room for a further one."""
    hidden, found = folder.hidden.get(repository_id, ()), list[str]()
    while len(found) < limit:
        names = list_folders(r, repository_id, folder.path, after, limit)
        found += [each for each in names if each not in hidden]
        if len(names) < limit:
            break
        after = names[-1]
    return found[:limit]


def _as_folder(name: str) -> str:
    return f"{name}/"


def _first(limit: int, lists: Sequence[Sequence[Any]], key: Callable[[Any], str]) -> list[Any]:
    """The first elements of sorted lists without duplicates; of equal ones that of the first list."""
    return [next(group) for _, group in islice(groupby(merge(*lists, key=key), key), limit)]


def _shown(
    r: Reader,
    found: Sequence[tuple[File, str]],
    judges: Mapping[tuple[int, str], Judge | None],
    served: Mapping[str, frozenset[int] | None],
) -> list[tuple[File, str]]:
    shown = []
    for file, key in found:
        ids, judge = served[key], judges[file.repository_id, key]
        if (ids is None or file.repository_id in ids) and (judge is None or judge.of_kept(r, file).served):
            shown.append((file, key))
    return shown
