"""The records of a hosted channel, in memory by package, and updated by change; see L{package_lists}."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import define

from pkgrepo.formats.conda.names import CONDA, TAR_BZ2
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages

from .records import ABOUT, EXPORTS, RECORD
from .shards import Shard, make_shard

_NO_EXPORTS = b"{}"


@define(slots=False)
class FolderRecords:
    """
    The records of a package in one folder of a channel, in the order of versions.

    Each text has the members of a JSON object, with a comma before each: the records of the files by their names, and
    the entries in ``run_exports.json``; both by the ending of the files.
    """

    name: str
    records: Mapping[str, bytes]
    exports: Mapping[str, bytes]

    @cached_property
    def digest(self) -> bytes:
        """The sha256 of all records and entries."""
        parts = [text for ending in (TAR_BZ2, CONDA) for text in (self.records[ending], self.exports[ending])]
        return hashlib.sha256(b"\x00".join((self.name.encode(), *parts))).digest()

    @cached_property
    def shard(self) -> Shard:
        """The records as a shard. Takes 20 us for each: use a thread."""
        return make_shard(self.name, self.records[TAR_BZ2], self.records[CONDA])


@define
class PackageRecords:
    """The records of a package by folder, and what it says of itself, as JSON."""

    name: str
    folders: Mapping[str, FolderRecords]
    about: bytes


def read_all(reader: Reader, repository_id: int) -> list[tuple[str, PackageRecords]]:
    """The records of all packages of a channel, ordered by name."""
    exports = dict(fragments.fragments_by_package(reader, repository_id, EXPORTS))
    about = dict(fragments.fragments_by_package(reader, repository_id, ABOUT))
    return [
        (name, _join(name, records, exports.get(name, ()), about.get(name, ())))
        for name, records in fragments.fragments_by_package(reader, repository_id, RECORD)
    ]


def read_one(reader: Reader, repository_id: int, name: str) -> PackageRecords | None:
    """The records of one package, None if it has none."""
    package = packages.find_package(reader, repository_id, name)
    if package is None:
        return None
    records, exports, about = (fragments.list_fragments(reader, package.id, kind) for kind in (RECORD, EXPORTS, ABOUT))
    return _join(name, records, exports, about) if records else None


def _join(
    name: str, records: Sequence[Fragment], exports: Sequence[Fragment], about: Sequence[Fragment]
) -> PackageRecords:
    exported = {each.key: each.body for each in exports}
    texts: dict[str, dict[str, list[bytes]]] = defaultdict(lambda: {TAR_BZ2: [], CONDA: []})
    exports_texts: dict[str, dict[str, list[bytes]]] = defaultdict(lambda: {TAR_BZ2: [], CONDA: []})
    for each in records:
        subdir, _, file = each.key.partition("/")
        ending = CONDA if file.endswith(CONDA) else TAR_BZ2
        texts[subdir][ending].append(b',"%b":%b' % (file.encode(), each.body))
        entry = b',"%b":{"run_exports":%b}' % (file.encode(), exported.get(each.key, _NO_EXPORTS))
        exports_texts[subdir][ending].append(entry)
    folders = {
        subdir: FolderRecords(name, _joined(some), _joined(exports_texts[subdir])) for subdir, some in texts.items()
    }
    return PackageRecords(name, folders, about[0].body if about else b"{}")


def _joined(texts: Mapping[str, Sequence[bytes]]) -> dict[str, bytes]:
    return {ending: b"".join(some) for ending, some in texts.items()}
