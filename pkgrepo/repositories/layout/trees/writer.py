"""Shows files in the readable layout at their public paths, with the documents of their directories."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import Factory, frozen

from pkgrepo.interfaces import IPathFormat, Reader
from pkgrepo.model import File, Fragment, Package, Repository
from pkgrepo.repositories.layout.sidecars import (
    REPOSITORY,
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    VersionSidecar,
    encode,
)
from pkgrepo.repositories.layout.writer import EntrySnapshot, LayoutWriter, Plan, read_package, read_version
from pkgrepo.storage.catalog.packages import files, fragments, versions
from pkgrepo.storage.layout_folder import LayoutFolder

from .sidecars import KeptSidecar, TreePlaces


@frozen
class TreeSnapshot:
    """
    An entry as the catalog has it now: a package or a version as ``entry``, or a plain file as ``file``.

    ``document`` is that of the directory, None if it has none; ``kept`` are pairs of kind and fragment. ``plain`` are
    the paths of plain files that lie in the directory of a version, beside its own files.
    """

    entry: EntrySnapshot | None = None
    document: bytes | None = None
    kept: tuple[tuple[str, Fragment], ...] = ()
    plain: frozenset[str] = Factory(frozenset)
    file: File | None = None


class TreeLayoutWriter(LayoutWriter[TreeSnapshot]):
    """
    Shows versions and packages by their directories, and plain files.

    A plain file is an entry with an empty key of its package and the path as version.
    """

    def __init__(self, layout: LayoutFolder, repository: Repository, format_: IPathFormat) -> None:
        super().__init__(layout, repository)
        self._format = format_
        self._places = TreePlaces(repository.name)

    def read(self, reader: Reader, package_key: str, version_key: str) -> TreeSnapshot:
        """See L{LayoutWriter.read}."""
        repository_id = self._repository.id
        if not package_key:
            found = files.find_file(reader, repository_id, version_key)
            return TreeSnapshot(file=found if found is None or found.package_id is None else None)
        if not version_key:
            entry = read_package(reader, repository_id, package_key)
            return TreeSnapshot(
                entry=entry,
                document=self._document(reader, package_key, ""),
                kept=() if entry.package is None else self._kept(reader, entry.package),
            )
        entry = read_version(reader, repository_id, package_key, version_key)
        # A version that is gone has its key as text; no format with free paths spells one version in two ways.
        version = version_key if entry.version is None else entry.version.text
        plain = files.plain_paths_in(reader, repository_id, self._format.directory(package_key, version))
        return TreeSnapshot(entry=entry, document=self._document(reader, package_key, version), plain=frozenset(plain))

    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """See L{LayoutWriter.entries}."""
        keys, texts = versions.version_keys(reader, package.id), versions.version_texts(reader, package.id)
        return [("", ""), *zip(keys, texts, strict=True)]

    def place_of(self, _package_key: str, path: str, _sha256: str) -> str:
        """See L{LayoutWriter.place_of}."""
        return self._places.of_path(path)

    def plan(self, package_key: str, version: str, snapshot: TreeSnapshot) -> Plan:
        """See L{LayoutWriter.plan}."""
        if not package_key:
            return self._plan_plain(version, snapshot.file)
        assert snapshot.entry is not None
        if version:
            return self._plan_version(package_key, version, snapshot, snapshot.entry)
        return self._plan_package(package_key, snapshot, snapshot.entry)

    def apply(self, plan: Plan) -> None:
        """
        See L{LayoutWriter.apply}. Removals come first: a folder may follow where a file was.

        A file that a directory could not be removed for, because of a crash, is found when the directory is next shown.
        """
        for place in plan.removals:
            self._layout.remove(place)
        for locator, place in plan.links:
            self._layout.link(locator, place)
        for place, data in plan.documents:
            self._layout.write(place, data)

    def plan_leftovers(self, known: Mapping[str, Collection[str]]) -> Plan:
        """See L{LayoutWriter.plan_leftovers}. The versions of the package ``""`` are the paths of plain files."""
        directories: set[str] = set()
        places = {f"{self._repository.name}/{REPOSITORY}"}
        for key, texts in known.items():
            if key:
                places.update((self._places.of_package(key), self._places.of_burned(key), self._places.of_kept(key)))
                places.update(self._document_places(self._format.directory(key, "")))
            for text in filter(None, texts):
                if key:
                    directories.add(self._places.of_path(self._format.directory(key, text)))
                    places.add(self._places.of_version(key, text))
                else:
                    places.update((self._places.of_path(text), self._places.of_plain(text)))
        return Plan(
            removals=tuple(
                place
                for place in self._layout.walk(self._repository.name)
                if place not in places and place.rpartition("/")[0] not in directories
            )
        )

    def _plan_plain(self, path: str, file: File | None) -> Plan:
        place, sidecar = self._places.of_path(path), self._places.of_plain(path)
        if file is None:
            # Something else may be at the path by now: a folder, or a file where this one's folder was.
            return Plan(removals=self._existing(place, sidecar))
        document = {sidecar: encode(FileSidecar.of(file, place))}
        linked = self._layout.is_linked(file.locator, place)
        return Plan(links=() if linked else ((file.locator, place),), documents=self._changed(document))

    def _plan_package(self, key: str, snapshot: TreeSnapshot, entry: EntrySnapshot) -> Plan:
        package = entry.package
        places = self._document_places(self._format.directory(key, ""))
        wanted: dict[str, bytes | None] = dict.fromkeys(places, snapshot.document)
        wanted[self._places.of_package(key)] = (
            None if package is None else encode(PackageSidecar.of(package, entry.tags))
        )
        kept = None if package is None or not snapshot.kept else encode(KeptSidecar.of(package, snapshot.kept))
        wanted[self._places.of_kept(key)] = kept
        wanted[self._places.of_burned(key)] = encode(BurnedSidecar.of(key, entry.burned)) if entry.burned else None
        documents = {place: data for place, data in wanted.items() if data is not None}
        removals = self._existing(*(place for place, data in wanted.items() if data is None))
        return Plan(documents=self._changed(documents), removals=removals)

    def _plan_version(self, key: str, version: str, snapshot: TreeSnapshot, entry: EntrySnapshot) -> Plan:
        directory = self._format.directory(key, version)
        documents: dict[str, bytes] = {}
        if snapshot.document is not None:
            documents = dict.fromkeys(self._document_places(directory), snapshot.document)
        sidecar = self._places.of_version(key, version)
        shown: list[FileSidecar] = []
        gone: tuple[str, ...] = ()
        if entry.package is not None and entry.version is not None:
            shown = [FileSidecar.of(file, self._places.of_path(file.path)) for file in entry.files]
            documents[sidecar] = encode(VersionSidecar.of(entry.package, entry.version, shown))
        else:
            gone = self._existing(sidecar)
        kept = {each.place for each in shown} | set(documents) | {self._places.of_path(path) for path in snapshot.plain}
        others = self._other_files(self._places.of_path(directory), frozenset(kept))
        return Plan(
            links=tuple((e.locator, e.place) for e in shown if not self._layout.is_linked(e.locator, e.place)),
            documents=self._changed(documents),
            removals=(*others, *gone),
        )

    def _document(self, reader: Reader, package_key: str, version: str) -> bytes | None:
        directory = self._format.directory(package_key, version)
        found: bytes | None = self._format.directory_document(reader, self._repository.id, directory)
        return found

    def _document_places(self, directory: str) -> list[str]:
        return [self._places.of_path(f"{directory}/{name}") for name in self._format.document_names]

    def _kept(self, reader: Reader, package: Package) -> tuple[tuple[str, Fragment], ...]:
        return tuple(
            (kind, fragment)
            for kind in self._format.kept_kinds
            for fragment in fragments.list_fragments(reader, package.id, kind)
        )

    def _existing(self, *places: str) -> tuple[str, ...]:
        return tuple(place for place in places if self._layout.is_file(place))
