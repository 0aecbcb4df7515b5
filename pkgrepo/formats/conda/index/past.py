"""
The records of a hosted channel at a time: of the files that are there now, those whose versions were not yanked then.

What is made of a wheel was yanked whenever that was: its own yank follows later, and it may have been removed meanwhile
and made again. When it came is for the rules of the view to say, see L{Judge}.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Fragment, Package, Repository, Version, VersionState
from pkgrepo.repositories.past import package_past
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

from .packages import ABOUT, DERIVED, PackageRecords, exports_body, join, record_body

PAGE = 1000  # packages


def read_past(reader: Reader, repository: Repository, at_ms: int) -> Iterator[tuple[str, PackageRecords]]:
    """The records of all packages of a channel, ordered by name, without what was yanked then."""
    yanks, gil, after = _Yanks(reader, repository, at_ms), GilReleaser(), ""
    while page := packages.list_packages(reader, repository.id, after=after, limit=PAGE):
        after = page[-1].key
        for package in page:
            gil.release_if_due()
            found = _read_one(reader, package, yanks)
            if found is not None:
                yield package.key, found


def _read_one(reader: Reader, package: Package, yanks: _Yanks) -> PackageRecords | None:
    by_id = {each.id: each for each in versions.list_versions(reader, package.id)}
    records: list[Fragment] = []
    exports: list[Fragment] = []
    for file in files.files_of_package(reader, package.id):
        version = None if file.version_id is None else by_id.get(file.version_id)
        if version is None or yanks.held(package.id, version, file):
            continue
        records.append(Fragment(version.sort, file.path, record_body(file)))
        body = exports_body(file)
        if body is not None:
            exports.append(Fragment(version.sort, file.path, body))
    if not records:
        return None
    about = index_documents.list_fragments(reader, package.id, ABOUT)
    return join(package.key, sorted(records), sorted(exports), about)


class _Yanks:
    """Which versions were yanked at a time, of the channel and of the repository whose wheels it has."""

    def __init__(self, reader: Reader, channel: Repository, at_ms: int) -> None:
        self._reader = reader
        self._parent = channel.parent
        self._at_ms = at_ms
        self._known: dict[int, Set[str]] = {}

    def held(self, package_id: int, version: Version, file: File) -> bool:
        """Whether a file of the channel was yanked."""
        derived = file.attrs.get(DERIVED)
        if derived is not None and self._parent is not None:
            wheel = files.find_file(self._reader, self._parent.id, derived["path"])
            if wheel is not None and wheel.version_id is not None:
                [of] = versions.versions_by_id(self._reader, [wheel.version_id])
                return of.key in self._of(of.package_id)
        return version.key in self._of(package_id)

    def _of(self, package_id: int) -> Set[str]:
        """The keys of the versions of a package that were yanked."""
        known = self._known.get(package_id)
        if known is None:
            now = {each.key: (each.state, each.reason) for each in versions.list_versions(self._reader, package_id)}
            past = package_past(self._reader, package_id, self._at_ms, present=now)
            then = now | past.states
            known = self._known[package_id] = {key for key, (state, _) in then.items() if state is VersionState.YANKED}
        return known
