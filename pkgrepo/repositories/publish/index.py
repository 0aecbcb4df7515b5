"""
The index documents of a package: fragments, updated in the transaction that changes the package.

A format stores a fragment for each file or version, so a change writes one fragment, whatever the number of versions.
Documents are joined from fragments on request (see ``splicing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from pkgrepo.interfaces import Transaction
from pkgrepo.model import File, Fragment, Package, Version
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.catalog.packages.versions import VersionRow


@frozen
class Change:
    """
    A change of a package: of one version, with files that were added or removed, or of the package alone.

    With ``last`` that was its last version: the package is removed next, with its fragments. ``files`` are all files
    that the version has now, by path, if they are known; see L{PackageIndex.files_after}.
    """

    version: Version | None = None
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()
    last: bool = False
    files: tuple[File, ...] | None = None


class PackageIndex:
    """
    A package that is being changed, as its format sees it.

    ``tx`` is the transaction of the change, for formats that store more than fragments.
    """

    def __init__(self, tx: Transaction, package: Package, now_ms: int) -> None:
        self.package = package
        self.tx = tx
        self.now_ms = now_ms

    def versions(self) -> list[Version]:
        """Return all versions, in the format's order."""
        return versions.list_versions(self.tx, self.package.id)

    def version_texts(self) -> list[str]:
        """Return the texts of all versions, in the format's order."""
        return versions.version_texts(self.tx, self.package.id)

    def files(self, version: Version | None = None) -> list[File]:
        """Return the files of one version, or of the whole package."""
        if version is not None:
            return files.files_of_version(self.tx, version.id)
        return files.files_of_package(self.tx, self.package.id)

    def files_after(self, change: Change) -> Sequence[File]:
        """Return all files that the version of a change has now, read only if the change does not have them."""
        if change.version is None:
            return ()
        return self.files(change.version) if change.files is None else change.files

    def put_fragment(self, kind: str, sort: bytes, key: str, body: bytes) -> None:
        """Set a fragment of a document; fragments are joined in the order of (sort, key)."""
        index_documents.put_fragment(self.tx, self.package.id, kind, sort, key, body)

    def put_fragments(self, new: Sequence[tuple[str, Fragment]]) -> None:
        """Set several fragments, given with their kinds, by one statement."""
        index_documents.put_fragments(self.tx, self.package.id, new)

    def remove_fragment(self, kind: str, sort: bytes, key: str) -> None:
        """Remove a fragment."""
        index_documents.remove_fragment(self.tx, self.package.id, kind, sort, key)


class Indexer(Protocol):
    """The function of a format that updates the fragments of a package after a change."""

    def __call__(self, index: PackageIndex, change: Change) -> None:
        """Runs in the writer's transaction; raising undoes the whole change."""


class VersionsIndexer(Protocol):
    """Updates fragments after a change of many versions; the rows are the new ones, or those that were removed."""

    def __call__(self, index: PackageIndex, rows: Sequence[VersionRow]) -> None:
        """Runs in the writer's transaction; raising undoes the whole change."""
