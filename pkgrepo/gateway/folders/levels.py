"""
Reads a level of folders from the catalog, a page at a time.

What several members have is one level, without duplicates, in the order of L{list_tree}. A level costs one index seek
for each of its folders, however many files are below them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from heapq import merge
from itertools import groupby, islice
from typing import Protocol, TypeVar

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.gateway.folders.pages import Cursor, Entry
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.packages.tree import file_or_folder, list_folders

T = TypeVar("T")


@frozen
class Meaning:
    """
    What a path says of a folder: the ``package`` (a key) whose versions are its folders, and whose files are in it.

    That is a package and the text of a version, which is None if they are of several ones, or of none. It is all None
    if the files belong to several packages.
    """

    package: str | None = None
    files_of: tuple[str, str | None] | None = None


class ReadFiles(Protocol):
    """Reads files of a folder."""

    def __call__(
        self, r: Reader, repository_id: int, folder: str, after: str, limit: int, /, *, of_packages: bool
    ) -> list[File]:
        """Up to ``limit`` files after a name; those that belong to no package, without ``of_packages``."""


def _one(file: File) -> Iterable[Entry]:
    return (Entry(file.path.rpartition("/")[2], size=file.size, modified_at=file.created_at),)


async def _nothing(_services: Services, _repository: Repository, _key: str) -> Sequence[str]:
    return ()


@frozen(kw_only=True, eq=False)
class FolderFormat:
    """
    What a format says of folders.

    ``meaning`` is that of a path. ``whole``: all that is below the folder of a package belongs to it. ``listed`` are
    the versions of a package (a key) that upstreams list. ``entries`` are those of a file, ``computed`` those of the
    folder of a package or version.
    """

    meaning: Callable[[Repository, str], Meaning]
    files: ReadFiles
    whole: bool
    listed: Callable[[Services, Repository, str], Awaitable[Sequence[str]]] = _nothing
    entries: Callable[[File], Iterable[Entry]] = _one
    computed: Sequence[Entry] = ()


@frozen
class Member:
    """
    A repository whose entries are shown.

    Of one that is not the ``owner`` of the package of a folder, no folders of its versions are; without
    ``owns_files`` no files of packages. What rules hide are the names of ``hidden_folders``, and the paths of
    ``hidden_files``.
    """

    repository_id: int
    owner: bool = True
    owns_files: bool = True
    hidden_folders: Set[str] = frozenset()
    hidden_files: Set[str] = frozenset()

    def shows(self, file: File) -> bool:
        """Whether no rule hides a file, or the one that it belongs to."""
        main = file.path if file.role is None else file.path.removesuffix(file.role)
        return main not in self.hidden_files


@frozen
class Folder:
    """A folder at a path (no slash at the end), with ``members`` that have it, and versions that upstreams list."""

    path: str
    meaning: Meaning
    members: Sequence[Member]
    is_known: bool = False  # it is that of a package or version that some member has
    listed: Sequence[str] = ()


def look(
    r: Reader, format_: FolderFormat, path: str, meaning: Meaning, every: Sequence[Member], listed: Sequence[str] = ()
) -> Folder | None:
    """The folder at a path in any of these repositories, or that upstreams list; None if it is nowhere."""
    package, text = meaning.files_of or (None, None)
    is_version = (
        package is not None
        and text is not None
        and any(each.owns_files and _has_version(r, each.repository_id, package, text) for each in every)
    )
    is_known = is_version or (
        meaning.package is not None
        and any(
            each.owner and packages.package_serial(r, each.repository_id, meaning.package) is not None for each in every
        )
    )
    if format_.whole:
        every = [each for each in every if each.owner and each.owns_files]
    else:  # only the folder of a version has files of packages; elsewhere those below need not be read
        every = [evolve(each, owns_files=each.owns_files and is_version) for each in every]
    there = [each for each in every if file_or_folder(r, each.repository_id, path) is True]
    if path and not there and not listed and not (is_known and format_.computed):
        return None
    return Folder(path, meaning, there, is_known, listed)


@frozen
class Level:
    """A page of a folder: names of folders, then files; and the next position, None at the end."""

    folders: Sequence[str]
    files: Sequence[File]
    following: Cursor | None


def list_level(r: Reader, format_: FolderFormat, folder: Folder, cursor: Cursor, limit: int) -> Level:
    """The names of folders, or the files, after a position; files of several packages also if rules hide them."""
    if not cursor.files:
        after = _sorts(cursor.after) if cursor.after else ""
        kept = [_folders(r, folder, each, cursor.after, limit) for each in folder.members]
        names = _first(limit, [*kept, [each for each in folder.listed if _sorts(each) > after]], _sorts)
        return Level(names, (), Cursor(after=names[-1]) if len(names) == limit else Cursor(files=True))
    listed = [_files(r, format_, folder, each, cursor.after, limit) for each in folder.members]
    files = _first(limit, listed, lambda file: file.path)
    following = Cursor(files=True, after=files[-1].path.rpartition("/")[2]) if len(files) == limit else None
    return Level((), files, following)


def entries_of(format_: FolderFormat, folder: Folder, level: Level) -> list[Entry]:
    """What is shown of a page."""
    entries = [Entry(name, folder=True) for name in level.folders]
    gil = GilReleaser()
    for file in level.files:
        gil.release_if_due()
        entries += format_.entries(file)
    computed = format_.computed if folder.is_known and level.following is None else ()
    return entries if computed and computed[0].name in (each.name for each in entries) else [*entries, *computed]


def _has_version(r: Reader, repository_id: int, key: str, text: str) -> bool:
    package = packages.find_package(r, repository_id, key)
    return package is not None and versions.find_version(r, package.id, text) is not None


def _folders(r: Reader, folder: Folder, member: Member, after: str, limit: int) -> list[str]:
    """The next folders of one repository: a name that is hidden makes room for a further one."""
    found, key = list[str](), None if member.owner else folder.meaning.package
    while len(found) < limit:
        names = list_folders(r, member.repository_id, folder.path, after, limit)
        shown = [each for each in names if each not in member.hidden_folders]
        found += [each for each in shown if key is None or not _has_version(r, member.repository_id, key, each)]
        if len(names) < limit:
            break
        after = names[-1]
    return found[:limit]


def _files(r: Reader, format_: FolderFormat, folder: Folder, member: Member, after: str, limit: int) -> list[File]:
    """The next files of one repository, as in L{_folders}."""
    found: list[File] = []
    while len(found) < limit:
        some = format_.files(r, member.repository_id, folder.path, after, limit, of_packages=member.owns_files)
        found += [each for each in some if member.shows(each)]
        if len(some) < limit:
            break
        after = some[-1].path.rpartition("/")[2]
    return found[:limit]


def _first(limit: int, lists: Sequence[Sequence[T]], key: Callable[[T], str]) -> list[T]:
    """The first elements of sorted lists without duplicates; of equal ones that of the first list."""
    return [next(group) for _, group in islice(groupby(merge(*lists, key=key), key), limit)]


def _sorts(name: str) -> str:
    return f"{name}/"
