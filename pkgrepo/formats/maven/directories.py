"""
Reads the entries of a directory from the catalog, a page at a time.

A level costs one index seek for each of its folders, however many files are below them. What several repositories have
is one level, without duplicates. Beside the stored files stand the names of what is computed: metadata, and checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from heapq import merge
from itertools import groupby, islice
from typing import TypeVar

from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, parse_text
from pkgrepo.gateway.responses.directory_pages import Cursor, Entry
from pkgrepo.interfaces import Reader
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.packages.tree import file_or_folder, list_files, list_folders

T = TypeVar("T")


@frozen
class Member:
    """
    A repository whose entries are listed.

    Of a repository that is not the ``owner`` of the package that the directory belongs to, nothing of the package is
    listed. ``owns_version`` is the same for the package of which the directory is a version. What rules hide are the
    names of ``hidden_folders``, and the paths of ``hidden_files``.
    """

    repository_id: int
    owner: bool = True
    owns_version: bool = True
    hidden_folders: Set[str] = frozenset()
    hidden_files: Set[str] = frozenset()

    def shows(self, file: File) -> bool:
        """Whether no rule hides a file, or the one that it belongs to."""
        main = file.path if file.role is None else file.path.removesuffix(file.role)
        return main not in self.hidden_files


@frozen
class Directory:
    """
    A directory, and what it may be: that of ``package``, or of a ``version`` as pair of package key and version key.

    ``path`` has no slash at the end. ``has_metadata`` and ``is_version`` are so in any of its ``members``.
    """

    path: str
    package: str | None
    version: tuple[str, str] | None
    members: tuple[Member, ...]
    has_metadata: bool = False
    is_version: bool = False


def find_directory(r: Reader, path: str, hosted: Sequence[int], others: Sequence[int]) -> Directory | None:
    """
    The directory at a path in any of the repositories (ids; those of ``hosted`` ones apart), or None if none has it.

    As for files, packages of a hosted repository hide those of the same name in ``others``.
    """
    package, version = _meaning(path)
    owned = package is not None and any(_has_package(r, each, package) for each in hosted)
    owned_version = version is not None and any(_has_package(r, each, version[0]) for each in hosted)
    every = [*(Member(each) for each in hosted), *(Member(each, not owned, not owned_version) for each in others)]
    there = [each for each in every if file_or_folder(r, each.repository_id, path) is True]
    is_version = version is not None and any(
        each.owns_version and _has_version(r, each.repository_id, *version) for each in every
    )
    has_metadata = is_version or (
        package is not None and any(each.owner and _has_package(r, each.repository_id, package) for each in every)
    )
    if not there and not has_metadata and path:
        return None
    return Directory(path, package, version, tuple(there), has_metadata, is_version)


def read_page(r: Reader, directory: Directory, cursor: Cursor, limit: int) -> tuple[list[Entry], Cursor | None]:
    """The entries after a position, of up to ``limit`` folders or files, and the next position, None at the end."""
    if not cursor.files:
        names = _first(limit, [_folders(r, directory, each, cursor.after, limit) for each in directory.members], _sorts)
        after = Cursor(files=False, after=names[-1]) if len(names) == limit else Cursor(files=True)
        return [Entry(name, folder=True) for name in names], after
    listed = [_files(r, directory, each, cursor.after, limit) for each in directory.members]
    files = _first(limit, listed, lambda file: file.path)
    gil = GilReleaser()
    entries: list[Entry] = []
    for file in files:
        gil.release_if_due()
        entries += _file_entries(file)
    if len(files) == limit:
        return entries, Cursor(files=True, after=files[-1].path.rpartition("/")[2])
    if directory.has_metadata and not any(entry.name == METADATA_NAME for entry in entries):
        entries += _with_checksums(Entry(METADATA_NAME), ALGORITHMS)
    return entries, None


def _meaning(path: str) -> tuple[str | None, tuple[str, str] | None]:
    """The package whose directory a path may be, and the version: pairs of package and version key."""
    if not path:
        return None, None
    try:
        found = parse_text(f"{path}/{METADATA_NAME}")
    except Invalid:  # too long for having metadata
        return None, None
    assert isinstance(found, Metadata)
    at = found.coordinates
    package = found.package_key if found.version is None else None
    return package, None if at is None else (at.package_key, at.version)


def _has_package(r: Reader, repository_id: int, key: str) -> bool:
    return packages.package_serial(r, repository_id, key) is not None


def _has_version(r: Reader, repository_id: int, package_key: str, version: str) -> bool:
    package = packages.find_package(r, repository_id, package_key)
    return package is not None and versions.find_version(r, package.id, version) is not None


def _folders(r: Reader, directory: Directory, member: Member, after: str, limit: int) -> list[str]:
    """The next folders of one repository: a name that is hidden makes room for a further one."""
    found: list[str] = []
    while len(found) < limit:
        names = list_folders(r, member.repository_id, directory.path, after, limit)
        names_shown = [name for name in names if name not in member.hidden_folders]
        found += [name for name in names_shown if member.owner or not _is_version_of(r, directory, member, name)]
        if len(names) < limit:
            break
        after = names[-1]
    return found[:limit]


def _is_version_of(r: Reader, directory: Directory, member: Member, name: str) -> bool:
    return directory.package is not None and _has_version(r, member.repository_id, directory.package, name)


def _files(r: Reader, directory: Directory, member: Member, after: str, limit: int) -> list[File]:
    """The next files of one repository, as in L{_folders}."""
    # Only the directory of a version has files of packages; elsewhere those below need not be read.
    of_packages = directory.is_version and member.owns_version
    found: list[File] = []
    while len(found) < limit:
        some = list_files(r, member.repository_id, directory.path, after, limit, of_packages=of_packages)
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


def _file_entries(file: File) -> Iterator[Entry]:
    entry = Entry(file.path.rpartition("/")[2], size=file.size, modified_at=file.created_at)
    return _with_checksums(entry, [each for each in ALGORITHMS if each in file.digests])


def _with_checksums(entry: Entry, algorithms: Sequence[str]) -> Iterator[Entry]:
    yield entry
    for algorithm in algorithms:
        yield Entry(f"{entry.name}.{algorithm}")
