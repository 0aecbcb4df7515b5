"""The records of a hosted channel, in memory by package, and updated by change; see L{package_lists}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource
from pkgrepo.storage.catalog.packages import fragments, packages
from pkgrepo.storage.catalog.server import repositories

from .records import EXPORTS, RECORD


@frozen
class Record:
    """One file in a folder of the channel: its record, and its run exports if it has any, as JSON."""

    file: str
    record: bytes
    exports: bytes | None = None


@frozen
class PackageRecords:
    """The records of a package by folder, in the order of versions."""

    name: str
    folders: Mapping[str, tuple[Record, ...]]

    def of(self, subdir: str, ending: str) -> Iterable[Record]:
        """The files of one kind in a folder."""
        return (each for each in self.folders.get(subdir, ()) if each.file.endswith(ending))


def make_source(forms: Mapping[str, ListForm[PackageRecords]]) -> ListSource[PackageRecords]:
    """The records of all packages of a channel, for documents in these forms."""
    return ListSource(serial=repositories.content_serial, read_all=_read_all, read_one=_read_one, forms=forms)


def _read_all(reader: Reader, repository_id: int) -> list[tuple[str, PackageRecords]]:
    exports = dict(fragments.fragments_by_package(reader, repository_id, EXPORTS))
    return [
        (name, _join(name, records, exports.get(name, ())))
        for name, records in fragments.fragments_by_package(reader, repository_id, RECORD)
    ]


def _read_one(reader: Reader, repository_id: int, key: str) -> PackageRecords | None:
    package = packages.find_package(reader, repository_id, key)
    if package is None:
        return None
    records = fragments.list_fragments(reader, package.id, RECORD)
    return _join(key, records, fragments.list_fragments(reader, package.id, EXPORTS)) if records else None


def _join(name: str, records: Sequence[Fragment], exports: Sequence[Fragment]) -> PackageRecords:
    found = {each.key: each.body for each in exports}
    folders: dict[str, list[Record]] = {}
    for each in records:
        subdir, _, file = each.key.partition("/")
        folders.setdefault(subdir, []).append(Record(file, each.body, found.get(each.key)))
    return PackageRecords(name, {subdir: tuple(some) for subdir, some in folders.items()})


JSON_TYPE: Final = "application/json"
