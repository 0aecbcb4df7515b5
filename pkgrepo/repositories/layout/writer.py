"""What the readable layout has to show, held against what it shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from attrs import Factory, frozen

from pkgrepo.interfaces import IFormat, Reader
from pkgrepo.model import File, Package, Repository, Version
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.tombstones import Tombstone, tombstones_of_package
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
    encode,
)

S = TypeVar("S")


@frozen
class EntrySnapshot:
    """
    A version, or a package beside its versions, as it is now.

    ``package`` is None when no version is left. Of a version ``version`` is None when it is gone. Of a package ``tags``
    are those that stand for versions, as these are written; ``burned`` are what is left of its deleted files.
    """

    package: Package | None
    version: Version | None = None
    files: tuple[File, ...] = ()
    tags: Mapping[str, str] = Factory(dict)
    burned: tuple[Tombstone, ...] = ()


def read_package(reader: Reader, repository_id: int, package_key: str) -> EntrySnapshot:
    """What the directory of a package has to show beside its versions."""
    burned = tuple(tombstones_of_package(reader, repository_id, package_key))
    package = packages.find_package(reader, repository_id, package_key)
    if package is None:
        return EntrySnapshot(package=None, burned=burned)
    return EntrySnapshot(package=package, tags=tags.tagged_versions(reader, package.id), burned=burned)


def read_version(reader: Reader, repository_id: int, package_key: str, version_key: str) -> EntrySnapshot:
    """What the directory of a version has to show."""
    package = packages.find_package(reader, repository_id, package_key)
    version = None if package is None else versions.find_version(reader, package.id, version_key)
    if version is None:
        return EntrySnapshot(package=package)
    return EntrySnapshot(package=package, version=version, files=tuple(files.files_of_version(reader, version.id)))


@frozen
class Plan:
    """
    What has to change on the disk: links as (locator, place), documents as (place, bytes), and what has to go.

    ``drafts`` are documents that are on the disk already, as (path of the draft, place).
    """

    links: tuple[tuple[str, str], ...] = ()
    documents: tuple[tuple[str, bytes], ...] = ()
    drafts: tuple[tuple[str, str], ...] = ()
    doomed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.links) + len(self.documents) + len(self.drafts) + len(self.doomed)

    @property
    def places(self) -> list[str]:
        """What would be changed, as paths below the layout's root."""
        shown = [place for _, place in (*self.links, *self.drafts)]
        return [*shown, *(place for place, _ in self.documents), *self.doomed]


class LayoutWriter(ABC, Generic[S]):
    """
    Holds what a repository's packages are against the readable layout.

    Every method blocks, so call it in a thread: ``read`` and ``entries`` in one that reads the catalog.
    """

    whole_packages = False  # whether a package is shown as a whole, whatever of it changed

    def __init__(self, layout: LayoutFolder, repository: Repository) -> None:
        self._layout = layout
        self._repository = repository

    @property
    def repository(self) -> Repository:
        """Whose packages they are."""
        return self._repository

    @abstractmethod
    def read(self, reader: Reader, package_key: str, version_key: str) -> S:
        """What a version is now, or with an empty key the package."""

    @abstractmethod
    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """What of a package is shown by itself, as keys and texts of versions; both are empty for the package."""

    @abstractmethod
    def plan(self, package_key: str, version: str, shown: S) -> Plan:
        """
        What it would take to have one version's directory show it.

        ``version`` is how the version is written, which names its directory; empty for the package.
        """

    @abstractmethod
    def plan_rest(self, known: Mapping[str, Collection[str]]) -> Plan:
        """What shows packages and versions that do not exist; ``known`` are the texts of the entries by package."""

    @abstractmethod
    def place_of(self, package_key: str, path: str, sha256: str) -> str:
        """Where the bytes of a file are shown, which a format that shows packages as a whole knows by digest."""

    def show(self, package_key: str, version: str, shown: S) -> int:
        """Make the directory of one of the entries show it; how many changes that took."""
        plan = self.plan(package_key, version, shown)
        self.apply(plan)
        return len(plan)

    def plan_repository(self) -> Plan:
        """What it would take to have the repository's own document right."""
        place = f"{self._repository.name}/{REPOSITORY}"
        return Plan(documents=self._different({place: encode(RepositorySidecar.of(self._repository))}))

    def apply(self, plan: Plan) -> None:
        """Do what was planned."""
        for locator, place in plan.links:
            self._layout.link(locator, place)
        for place, data in plan.documents:
            self._layout.write(place, data)
        for draft, place in plan.drafts:
            self._layout.put(draft, place)
        for place in plan.doomed:
            self._layout.remove(place)

    def show_repository(self) -> None:
        """Write what the repository itself is."""
        self.apply(self.plan_repository())

    def _different(self, documents: Mapping[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        return tuple((place, data) for place, data in documents.items() if self._layout.read(place) != data)

    def _others(self, directory: str, kept: frozenset[str]) -> tuple[str, ...]:
        places = (f"{directory}/{name}" for name in self._layout.files(directory))
        return tuple(place for place in places if place not in kept)


class FileLayoutWriter(LayoutWriter[EntrySnapshot]):
    """
    Shows the files of versions, each version in a directory of its own.

    What is told of the package is an entry by itself, with an empty key and text: thousands of versions that go at once
    would each write anew what is left of all others.
    """

    def __init__(self, layout: LayoutFolder, repository: Repository, format_: IFormat) -> None:
        super().__init__(layout, repository)
        self._format = format_

    def read(self, reader: Reader, package_key: str, version_key: str) -> EntrySnapshot:
        """See L{LayoutWriter.read}."""
        if not version_key:
            return read_package(reader, self._repository.id, package_key)
        return read_version(reader, self._repository.id, package_key, version_key)

    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """See L{LayoutWriter.entries}."""
        keys, texts = versions.version_keys(reader, package.id), versions.version_texts(reader, package.id)
        return [("", ""), *zip(keys, texts, strict=True)]

    def place_of(self, _package_key: str, path: str, _sha256: str) -> str:
        """See L{LayoutWriter.place_of}."""
        return shorten(f"{self._repository.name}/{self._format.readable_path(path)}")

    def plan(self, package_key: str, version: str, shown: EntrySnapshot) -> Plan:
        """See L{LayoutWriter.plan}."""
        top = shorten(f"{self._repository.name}/{package_key}")
        return (
            self._plan_version(top, package_key, version, shown)
            if version
            else self._plan_package(top, package_key, shown)
        )

    def _plan_package(self, top: str, package_key: str, shown: EntrySnapshot) -> Plan:
        documents: dict[str, bytes] = {}
        doomed: tuple[str, ...] = ()
        if shown.burned:
            documents[f"{top}/{BURNED}"] = encode(BurnedSidecar.of(package_key, shown.burned))
        elif self._layout.read(f"{top}/{BURNED}") is not None:
            doomed = (f"{top}/{BURNED}",)
        if shown.package is None:
            doomed = self._others(top, frozenset(documents))
        else:
            documents[f"{top}/{PACKAGE}"] = encode(PackageSidecar.of(shown.package, shown.tags))
        return Plan(documents=self._different(documents), doomed=doomed)

    def _plan_version(self, top: str, package_key: str, version: str, shown: EntrySnapshot) -> Plan:
        directory = shorten(f"{top}/{version}")
        if shown.package is None or shown.version is None:
            return Plan(doomed=self._others(directory, frozenset()))
        entries = [FileSidecar.of(file, self.place_of(package_key, file.path, file.sha256)) for file in shown.files]
        sidecar = shorten(f"{directory}/{package_key.rsplit('/', 1)[-1]}-{version}.json")
        documents = {sidecar: encode(VersionSidecar.of(shown.package, shown.version, entries))}
        links = tuple(
            (entry.locator, entry.place) for entry in entries if not self._layout.is_linked(entry.locator, entry.place)
        )
        kept = frozenset({entry.place for entry in entries} | {sidecar})
        return Plan(links=links, documents=self._different(documents), doomed=self._others(directory, kept))

    def plan_rest(self, known: Mapping[str, Collection[str]]) -> Plan:
        """See L{LayoutWriter.plan_rest}."""
        top = self._repository.name
        expected = {top, *(shorten(f"{top}/{key}") for key in known)}
        expected.update(shorten(f"{top}/{key}/{version}") for key, versions in known.items() for version in versions)
        return Plan(doomed=tuple(p for p in self._layout.walk(top) if p.rpartition("/")[0] not in expected))
