"""
Shows files in the readable layout at their public paths, with the documents of their directories.

Clients choose the paths of files freely, so the sidecars are apart from them, in a folder that no public path leads to:

==============================  ========================================================================================
place in the repository         what
==============================  ========================================================================================
``.repository.json``            as in every repository
``.pkgrepo/versions/<p>/<v>``   a version with its files
``.pkgrepo/packages/<p>``       a package without its versions
``.pkgrepo/burned/<p>``         the deleted files of a package, which stay when it is removed
``.pkgrepo/kept/<p>``           the fragments of a package that cannot be made from its files
``.pkgrepo/files/<2>/<62>``     a plain file, by the hex digits of the sha256 of its path
anything else                   what the public path says; one that begins like the first two has a ``~`` behind that
==============================  ========================================================================================

All end with ``.json``. ``<p>`` and ``<v>`` are the key of a package and the text of a version, with ``~-`` for ``~``:
two of them never have one name, also not where a long name is shortened, which adds a ``~`` and a hex digit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from attrs import Factory, evolve, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Fragment, Package, Repository
from pkgrepo.repositories.format import Tree
from pkgrepo.repositories.layout.sidecars import (
    REPOSITORY,
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    VersionSidecar,
    encode,
)
from pkgrepo.repositories.layout.writer import EntrySnapshot, LayoutWriter, Plan, read_package, read_version
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.layout_folder import LayoutFolder, shorten

SIDECARS: Final = ".pkgrepo"
_TAKEN: Final = re.compile(f"({re.escape(SIDECARS)}|{re.escape(REPOSITORY)})~*")


class KeptFragment(msgspec.Struct, frozen=True, kw_only=True):
    """One fragment; see L{Fragment}."""

    kind: str
    sort: bytes
    key: str
    body: bytes


class KeptSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """The fragments of a package that cannot be made from its files; ``package`` is its key."""

    package: str
    name: str
    fragments: list[KeptFragment]

    @classmethod
    def of(cls, package: Package, fragments: Sequence[tuple[str, Fragment]]) -> KeptSidecar:
        """Make the sidecar of a package with these pairs of kind and fragment."""
        kept = [KeptFragment(kind=kind, sort=sort, key=key, body=body) for kind, (sort, key, body) in fragments]
        return cls(package=package.key, name=package.name, fragments=kept)


TreeSidecar = VersionSidecar | PackageSidecar | BurnedSidecar | KeptSidecar | FileSidecar

KINDS: Final[dict[str, type[TreeSidecar]]] = {
    "versions": VersionSidecar,
    "packages": PackageSidecar,
    "burned": BurnedSidecar,
    "kept": KeptSidecar,
    "files": FileSidecar,
}


class TreePlaces:
    """The places of one repository, which its folder's name begins."""

    def __init__(self, repository: str) -> None:
        self._repository = repository
        self._sidecars = f"{repository}/{SIDECARS}"

    def of_path(self, path: str) -> str:
        """The place of what has this public path."""
        first, slash, rest = path.partition("/")
        mark = "~" if _TAKEN.fullmatch(first) else ""
        return shorten(f"{self._repository}/{first}{mark}{slash}{rest}")

    def of_version(self, package_key: str, version: str) -> str:
        """The place of the sidecar of a version."""
        return shorten(f"{self._sidecars}/versions/{_name(package_key)}/{_name(version)}.json")

    def of_package(self, package_key: str) -> str:
        """The place of the sidecar of a package."""
        return shorten(f"{self._sidecars}/packages/{_name(package_key)}.json")

    def of_burned(self, package_key: str) -> str:
        """The place of the sidecar of the deleted files of a package."""
        return shorten(f"{self._sidecars}/burned/{_name(package_key)}.json")

    def of_kept(self, package_key: str) -> str:
        """The place of the sidecar of the fragments of a package."""
        return shorten(f"{self._sidecars}/kept/{_name(package_key)}.json")

    def of_plain(self, path: str) -> str:
        """The place of the sidecar of a plain file."""
        digest = hashlib.sha256(path.encode()).hexdigest()
        return f"{self._sidecars}/files/{digest[:2]}/{digest[2:]}.json"


def kind_of(place: str) -> type[TreeSidecar] | None:
    """What a place holds, or None if it holds no sidecar of a tree."""
    _, folder, rest = f"{place}//".split("/", 2)
    return KINDS.get(rest.partition("/")[0]) if folder == SIDECARS and place.endswith(".json") else None


def _name(text: str) -> str:
    return text.replace("~", "~-")


@frozen
class DirectoryDocument:
    """
    The document of a directory: made of fragments as ``content``, or uploaded as the plain ``file``.

    Both are None if it has none. It is at several places, which have the names that the format gives it.
    """

    file: File | None = None
    content: bytes | None = None


@frozen
class TreeSnapshot:
    """
    An entry as the catalog has it now: a package or a version as ``entry``, or a plain file as ``file``.

    ``document`` is that of the directory of a package or version, and of a plain file that has the name of documents.
    ``kept`` are pairs of kind and fragment. ``plain`` are the paths of plain files that lie in the directory of a
    version, beside its own files.
    """

    entry: EntrySnapshot | None = None
    document: DirectoryDocument = DirectoryDocument()
    kept: tuple[tuple[str, Fragment], ...] = ()
    plain: frozenset[str] = Factory(frozenset)
    file: File | None = None


class TreeLayoutWriter(LayoutWriter[TreeSnapshot]):
    """
    Shows versions and packages by their directories, and plain files.

    A plain file is an entry with an empty key of its package and the path as version.
    """

    def __init__(self, layout: LayoutFolder, repository: Repository, tree: Tree) -> None:
        super().__init__(layout, repository, places_vary=tree.places_vary)
        self._tree = tree
        self._places = TreePlaces(repository.folder)

    def read(self, reader: Reader, package_key: str, version_key: str) -> TreeSnapshot:
        """Read a package, a version, or a plain file, with the document of its directory."""
        repository_id = self._repository.id
        if not package_key:
            directory = self._documented(version_key)
            if directory is not None:
                return TreeSnapshot(document=self._document(reader, directory))
            return TreeSnapshot(file=_plain(files.find_file(reader, repository_id, version_key)))
        if not version_key:
            entry = read_package(reader, repository_id, package_key)
            return TreeSnapshot(
                entry=entry,
                document=self._document(reader, self._tree.directory(package_key, "")),
                kept=() if entry.package is None else self._kept(reader, entry.package),
            )
        entry = read_version(reader, repository_id, package_key, version_key)
        # A version that is gone has its key as text; no format with free paths spells one version in two ways.
        version = version_key if entry.version is None else entry.version.text
        directory = self._tree.directory(package_key, version)
        plain = () if self.places_vary else files.plain_paths_in(reader, repository_id, directory)
        return TreeSnapshot(entry=entry, document=self._document(reader, directory), plain=frozenset(plain))

    def entries(self, reader: Reader, package: Package) -> list[tuple[str, str]]:
        """Return the package and each of its versions."""
        keys, texts = versions.version_keys(reader, package.id), versions.version_texts(reader, package.id)
        return [("", ""), *zip(keys, texts, strict=True)]

    def place_of(self, _package_key: str, path: str, _sha256: str) -> str:
        """Return the place of the public path."""
        return self._places.of_path(path)

    def plan(self, package_key: str, version: str, snapshot: TreeSnapshot) -> Plan:
        """Plan the directory of a version or package, or a plain file."""
        if not package_key:
            return self._plan_plain(version, snapshot)
        assert snapshot.entry is not None
        if version:
            return self._plan_version(package_key, version, snapshot, snapshot.entry)
        return self._plan_package(package_key, snapshot, snapshot.entry)

    def apply(self, plan: Plan) -> None:
        """Carry out a plan, its removals first: a folder may follow where a file was."""
        super().apply(Plan(removals=plan.removals, first=plan.first))
        super().apply(evolve(plan, removals=(), first=()))

    def plan_leftovers(self, known: Mapping[str, Collection[str]]) -> Plan:
        """Plan the removal of unknown places. The versions of the package ``""`` are the paths of plain files."""
        directories: set[str] = set()
        places = {f"{self._repository.folder}/{REPOSITORY}"}
        for key, texts in known.items():
            if key:
                places.update((self._places.of_package(key), self._places.of_burned(key), self._places.of_kept(key)))
                places.update(self._document_places(self._tree.directory(key, "")))
            for text in filter(None, texts):
                if key:
                    sidecar = self._places.of_version(key, text)
                    places.update((sidecar, *self._recorded(sidecar)))
                    if not self.places_vary:
                        directories.add(self._places.of_path(self._tree.directory(key, text)))
                else:
                    places.update((*self._plain_places(text), self._places.of_plain(text)))
        return Plan(
            removals=tuple(
                place
                for place in self._layout.walk(self._repository.folder)
                if place not in places and place.rpartition("/")[0] not in directories
            )
        )

    def _plan_plain(self, path: str, snapshot: TreeSnapshot) -> Plan:
        sidecar = self._places.of_plain(path)
        file = snapshot.document.file or snapshot.file
        if file is None:
            shown = self._plan_shown(self._plain_places(path), snapshot.document)
            return evolve(shown, removals=(*shown.removals, *self._existing(sidecar)))
        shown = self._plan_shown(self._plain_places(path), DirectoryDocument(file))
        document = {sidecar: encode(FileSidecar.of(file, self._places.of_path(path)))}
        return evolve(shown, documents=self._changed(document))

    def _plan_package(self, key: str, snapshot: TreeSnapshot, entry: EntrySnapshot) -> Plan:
        package = entry.package
        wanted = {
            self._places.of_package(key): None if package is None else encode(PackageSidecar.of(package, entry.tags)),
            self._places.of_kept(key): (
                None if package is None or not snapshot.kept else encode(KeptSidecar.of(package, snapshot.kept))
            ),
            self._places.of_burned(key): entry.burned_sidecar(key),
        }
        shown = self._plan_shown(self._document_places(self._tree.directory(key, "")), snapshot.document)
        documents = self._changed({place: data for place, data in wanted.items() if data is not None})
        removals = self._existing(*(place for place, data in wanted.items() if data is None))
        return evolve(shown, documents=(*shown.documents, *documents), removals=(*shown.removals, *removals))

    def _plan_version(self, key: str, version: str, snapshot: TreeSnapshot, entry: EntrySnapshot) -> Plan:
        directory = self._tree.directory(key, version)
        places = self._document_places(directory)
        shown = self._plan_shown(places, snapshot.document)
        sidecar = self._places.of_version(key, version)
        held: list[FileSidecar] = []
        documents: tuple[tuple[str, bytes], ...] = ()
        gone: tuple[str, ...] = ()
        if entry.package is not None and entry.version is not None:
            held = [FileSidecar.of(file, self._places.of_path(file.path)) for file in entry.files]
            documents = self._changed({sidecar: encode(VersionSidecar.of(entry.package, entry.version, held))})
        else:
            gone = self._existing(sidecar)
        kept = frozenset(
            {*places, *(each.place for each in held), *(self._places.of_path(path) for path in snapshot.plain)}
        )
        # Where places vary, files of others may be beside those of the version: only its sidecar tells which it had.
        others = () if self.places_vary else self._other_files(self._places.of_path(directory), kept)
        links = tuple((e.locator, e.place) for e in held if not self._layout.is_linked(e.locator, e.place))
        return Plan(
            links=(*shown.links, *links),
            documents=(*shown.documents, *documents),
            removals=(*shown.removals, *others, *gone),
            first=self._stale(self._recorded(sidecar), kept),
        )

    def _plan_shown(self, places: Sequence[str], document: DirectoryDocument) -> Plan:
        """The changes that make all places show a document, or nothing."""
        if document.file is not None:
            locator = document.file.locator
            return Plan(links=tuple((locator, p) for p in places if not self._layout.is_linked(locator, p)))
        if document.content is not None:
            return Plan(documents=self._changed(dict.fromkeys(places, document.content)))
        # Something else may be there by now: a folder, or a file where the folder was.
        return Plan(removals=self._existing(*places))

    def _document(self, reader: Reader, directory: str) -> DirectoryDocument:
        if not self._tree.document_names:
            return DirectoryDocument()
        uploaded = f"{directory}/{self._tree.document_names[0]}" if directory else self._tree.document_names[0]
        file = _plain(files.find_file(reader, self._repository.id, uploaded))
        if file is not None:
            return DirectoryDocument(file)
        content = self._tree.document(reader, self._repository.id, directory) if directory else None
        return DirectoryDocument(content=content)

    def _documented(self, path: str) -> str | None:
        """The directory that a plain file may be the document of, by its name."""
        directory, _, name = path.rpartition("/")
        return directory if name in self._tree.document_names[:1] else None

    def _plain_places(self, path: str) -> list[str]:
        directory = self._documented(path)
        return [self._places.of_path(path)] if directory is None else self._document_places(directory)

    def _document_places(self, directory: str) -> list[str]:
        prefix = f"{directory}/" if directory else ""
        return [self._places.of_path(prefix + name) for name in self._tree.document_names]

    def _kept(self, reader: Reader, package: Package) -> tuple[tuple[str, Fragment], ...]:
        return tuple(
            (kind, fragment)
            for kind in self._tree.kept_kinds
            for fragment in index_documents.list_fragments(reader, package.id, kind)
        )

    def _existing(self, *places: str) -> tuple[str, ...]:
        return tuple(place for place in places if self._layout.is_file(place))


def _plain(file: File | None) -> File | None:
    return file if file is None or file.package_id is None else None
