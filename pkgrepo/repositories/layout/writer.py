"""Compares packages with their directories in the readable layout, and makes the directories show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from attrs import Factory, frozen

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Package, Repository, Version
from pkgrepo.repositories.format import Layout
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.files import Tombstone, tombstones_of_package
from pkgrepo.storage.catalog.packages.packages import RetiredName
from pkgrepo.storage.layout_folder import LayoutFolder, shorten

from .sidecars import (
    BURNED,
    PACKAGE,
    REPOSITORY,
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    RepositorySidecar,
    VersionSidecar,
    decode,
    encode,
)

S = TypeVar("S")


@frozen
class EntrySnapshot:
    """
    A version, or a package without its versions, as the catalog has it now.

    ``package`` is None if it does not exist. For a version, ``version`` is None if it does not exist. For a package,
    ``tags`` are texts of versions by tag, and ``burned`` are the tombstones of its deleted files. Of a package that was
    removed, ``retired`` is its name while that is retired.
    """

    package: Package | None
    version: Version | None = None
    files: tuple[File, ...] = ()
    tags: Mapping[str, str] = Factory(dict)
    burned: tuple[Tombstone, ...] = ()
    retired: RetiredName | None = None

    def burned_sidecar(self, package_key: str) -> bytes | None:
        """What is to be remembered of deleted files and of the removed package itself, None for nothing."""
        if not self.burned and self.retired is None:
            return None
        retired_at = None if self.retired is None else self.retired.retired_at
        return encode(BurnedSidecar.of(package_key, self.burned, retired_at))


def read_package(reader: Reader, repository_id: int, package_key: str) -> EntrySnapshot:
    """Read what the directory of a package has to show beside its versions."""
    burned = tuple(tombstones_of_package(reader, repository_id, package_key))
    package = packages.find_package(reader, repository_id, package_key)
    if package is None:
        retired = packages.find_retired(reader, repository_id, package_key)
        return EntrySnapshot(package=None, burned=burned, retired=retired)
    return EntrySnapshot(package=package, tags=tags.tagged_versions(reader, package.id), burned=burned)


def read_version(reader: Reader, repository_id: int, package_key: str, version_key: str) -> EntrySnapshot:
    """Read what the directory of a version has to show."""
    package = packages.find_package(reader, repository_id, package_key)
    version = None if package is None else versions.find_version(reader, package.id, version_key)
    if version is None:
        return EntrySnapshot(package=package)
    return EntrySnapshot(package=package, version=version, files=tuple(files.files_of_version(reader, version.id)))


@frozen
class Plan:
    """
    Changes on the disk: ``links`` as (locator, place), ``documents`` as (place, bytes), and places to remove.

    ``drafts`` are documents in temporary files, as (path of the file, place). A place is a path in the layout. Places
    in ``first`` are removed before anything else, and for good: only a sidecar that changes or goes next knows of them.
    """

    links: tuple[tuple[str, str], ...] = ()
    documents: tuple[tuple[str, bytes], ...] = ()
    drafts: tuple[tuple[str, str], ...] = ()
    removals: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.links) + len(self.documents) + len(self.drafts) + len(self.removals) + len(self.first)

    @property
    def places(self) -> list[str]:
        """The places that the plan changes."""
        places = [place for _, place in (*self.links, *self.drafts)]
        return [*places, *(place for place, _ in self.documents), *self.removals, *self.first]


class LayoutWriter(ABC, Generic[S]):
    """
    Writes the packages of a repository into the readable layout.

    Every method blocks: call ``read``, ``entries`` and ``unused`` by ``ICatalog.scan``, others on a disk thread. With
    ``places_vary`` files of a version may be at places that its sidecar alone tells.
    """

    whole_packages = False  # whether a change of a version updates the whole package

    def __init__(self, layout: LayoutFolder, repository: Repository, *, places_vary: bool = False) -> None:
        self._layout = layout
        self._repository = repository
        self.places_vary = places_vary

    @property
    def repository(self) -> Repository:
        """The repository of the packages."""
        return self._repository

    @abstractmethod
    def read(self, reader: Reader, package_key: str, version_key: str) -> S:
        """Read a version from the catalog, or with an empty ``version_key`` the package."""

    @abstractmethod
    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """Return the entries of a package as (key, text) of versions; both are empty for the package itself."""

    @abstractmethod
    def plan(self, package_key: str, version: str, snapshot: S) -> Plan:
        """
        Return the changes that make the directory of an entry show this snapshot.

        ``version`` is the text of the version, which names its directory; empty for the package.
        """

    @abstractmethod
    def plan_leftovers(self, known: Mapping[str, Collection[str]]) -> Plan:
        """Return the removal of everything that is in no directory of ``known``, the texts of versions by package."""

    @abstractmethod
    def place_of(self, package_key: str, path: str, sha256: str) -> str:
        """Return the place of a file; images are identified by ``sha256``, other files by ``path``."""

    def show(self, package_key: str, version: str, snapshot: S) -> int:
        """Make the directory of an entry show this snapshot. Returns the number of changes."""
        plan = self.plan(package_key, version, snapshot)
        self.apply(plan)
        return len(plan)

    def plan_repository(self) -> Plan:
        """Return the change that makes the repository's own sidecar up to date, if any."""
        place = f"{self._repository.folder}/{REPOSITORY}"
        return Plan(documents=self._changed({place: encode(RepositorySidecar.of(self._repository))}))

    def apply(self, plan: Plan) -> None:
        """Carry out a plan."""
        for place in plan.first:
            self._layout.remove(place)
        for folder in dict.fromkeys(place.rpartition("/")[0] for place in plan.first):
            self._layout.sync_folder(folder)
        for locator, place in plan.links:
            self._layout.link(locator, place)
        for place, data in plan.documents:
            self._layout.write(place, data)
        for draft, place in plan.drafts:
            self._layout.put(draft, place)
        for place in plan.removals:
            self._layout.remove(place)

    def unused(self, reader: Reader, paths: Iterable[str]) -> list[str]:
        """The places of those of some public paths at which the repository has no file."""
        gone = (path for path in paths if files.find_file(reader, self._repository.id, path) is None)
        return [self.place_of("", path, "") for path in gone]

    def remove(self, places: Iterable[str]) -> None:
        """Remove the files at some places."""
        for place in self._stale(places, frozenset()):
            self._layout.remove(place)

    def show_repository(self) -> None:
        """Write the repository's own sidecar if it differs."""
        self.apply(self.plan_repository())

    def _changed(self, documents: Mapping[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        return tuple((place, data) for place, data in documents.items() if self._layout.read(place) != data)

    def _other_files(self, directory: str, kept: frozenset[str]) -> tuple[str, ...]:
        places = (f"{directory}/{name}" for name in self._layout.files(directory))
        return tuple(place for place in places if place not in kept)

    def _recorded(self, sidecar: str) -> tuple[str, ...]:
        """The places of the files that a version had when its sidecar was written, if the format cannot list them."""
        data = self._layout.read(sidecar) if self.places_vary else None
        if data is None:
            return ()
        try:
            entries = decode(data, VersionSidecar, sidecar).files
        except Invalid:
            return ()  # it is written anew; verify finds what is left
        return tuple(each.place for each in entries if each.place.startswith(f"{self._repository.folder}/"))

    def _stale(self, places: Iterable[str], kept: frozenset[str]) -> tuple[str, ...]:
        """Those of some places that have files which must not be there."""
        stale = (place for place in places if place not in kept and self._layout.is_file(place))
        return tuple(dict.fromkeys(stale))


class FileLayoutWriter(LayoutWriter[EntrySnapshot]):
    """
    Shows the files of versions, each version in its own directory.

    The package is an entry of its own, with an empty key and text: otherwise the removal of thousands of versions would
    rewrite the package's sidecar for each of them.
    """

    def __init__(self, layout: LayoutFolder, repository: Repository, places: Layout) -> None:
        super().__init__(layout, repository, places_vary=places.places_vary)
        self._places = places

    def read(self, reader: Reader, package_key: str, version_key: str) -> EntrySnapshot:
        """Read a package or a version."""
        if not version_key:
            return read_package(reader, self._repository.id, package_key)
        return read_version(reader, self._repository.id, package_key, version_key)

    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """Return the package and each of its versions."""
        keys, texts = versions.version_keys(reader, package.id), versions.version_texts(reader, package.id)
        return [("", ""), *zip(keys, texts, strict=True)]

    def place_of(self, _package_key: str, path: str, _sha256: str) -> str:
        """Return the place of the public path."""
        return shorten(f"{self._repository.folder}/{self._places.path(path)}")

    def plan(self, package_key: str, version: str, snapshot: EntrySnapshot) -> Plan:
        """Plan the directory of a version or package."""
        top = self._folder_of(package_key)
        return (
            self._plan_version(top, package_key, version, snapshot)
            if version
            else self._plan_package(top, package_key, snapshot)
        )

    def _plan_package(self, top: str, package_key: str, snapshot: EntrySnapshot) -> Plan:
        documents: dict[str, bytes] = {}
        removals: tuple[str, ...] = ()
        burned = snapshot.burned_sidecar(package_key)
        if burned is not None:
            documents[f"{top}/{BURNED}"] = burned
        elif self._layout.read(f"{top}/{BURNED}") is not None:
            removals = (f"{top}/{BURNED}",)
        if snapshot.package is None:
            removals = self._other_files(top, frozenset(documents))
        else:
            documents[f"{top}/{PACKAGE}"] = encode(PackageSidecar.of(snapshot.package, snapshot.tags))
        return Plan(documents=self._changed(documents), removals=removals)

    def _plan_version(self, top: str, package_key: str, version: str, snapshot: EntrySnapshot) -> Plan:
        directory = shorten(f"{top}/{version}")
        present = {f"{directory}/{name}" for name in self._layout.names(directory)}
        sidecar = self._sidecar_of(directory, package_key, version)
        recorded = self._recorded(sidecar) if sidecar in present else ()
        if snapshot.package is None or snapshot.version is None or snapshot.version.text != version:
            # Gone, or published again in another spelling, which has a directory of its own.
            outer = self._outer_places(package_key, version)
            return Plan(
                removals=self._other_places(present, outer, frozenset()), first=self._stale(recorded, frozenset())
            )
        entries = [FileSidecar.of(file, self.place_of(package_key, file.path, file.sha256)) for file in snapshot.files]
        documents = {sidecar: encode(VersionSidecar.of(snapshot.package, snapshot.version, entries))}
        links = tuple(
            (entry.locator, entry.place)
            for entry in entries
            if (entry.place not in present and entry.place.rpartition("/")[0] == directory)
            or not self._layout.is_linked(entry.locator, entry.place)
        )
        kept = frozenset({entry.place for entry in entries} | {sidecar})
        removals = self._other_places(present, self._outer_places(package_key, version), kept)
        changed = self._changed(documents) if sidecar in present else tuple(documents.items())
        return Plan(links=links, documents=changed, removals=removals, first=self._stale(recorded, kept))

    def plan_leftovers(self, known: Mapping[str, Collection[str]]) -> Plan:
        """Plan the removal of what belongs to no known package or version."""
        top = self._repository.folder
        expected = {top}
        places: set[str] = set()
        for key, texts in known.items():
            folder = self._folder_of(key)
            expected.add(folder)
            for version in texts:
                directory = shorten(f"{folder}/{version}")
                expected.add(directory)
                places.update(self._outer_places(key, version))
                if version:
                    places.update(self._recorded(self._sidecar_of(directory, key, version)))
        return Plan(
            removals=tuple(
                place
                for place in self._layout.walk(top)
                if place.rpartition("/")[0] not in expected and place not in places
            )
        )

    def _folder_of(self, package_key: str) -> str:
        return shorten(f"{self._repository.folder}/{self._places.folder(package_key)}")

    def _outer_places(self, package_key: str, version: str) -> Iterator[str]:
        """The places that files of a version may have outside of its directory."""
        for place in self._places.places(package_key, version):
            yield shorten(f"{self._repository.folder}/{place}")

    def _sidecar_of(self, directory: str, package_key: str, version: str) -> str:
        return shorten(f"{directory}/{package_key.rsplit('/', 1)[-1]}-{version}.json")

    def _other_places(self, present: Collection[str], outer: Iterable[str], kept: frozenset[str]) -> tuple[str, ...]:
        """What is at places of a version, ``present`` in its directory or ``outer`` ones, and must not be there."""
        return (*self._stale(outer, kept), *sorted(place for place in present if place not in kept))
