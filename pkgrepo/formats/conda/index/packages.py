"""
The records of a hosted channel: fragments that each change of a package writes, and what memory holds of them.

=============  ===============  ======================================================================
fragment       order            body
=============  ===============  ======================================================================
``record``     version, path    the record in repodata, as JSON
``exports``    version, path    the entry in ``run_exports.json``, as JSON, of files that have any
``about``      one              the entry in ``channeldata.json`` without its folders, as JSON
=============  ===============  ======================================================================

Files of a yanked version have none. In memory records are by package, and updated by change; see L{package_lists}.

Shards (CEP 16) are msgpack, compressed with zstd: an index with a digest for each package, and a file with the records
of one package, which is named after its own sha256, so it never changes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Final

import msgspec
import zstandard
from attrs import define, frozen

from pkgrepo.errors import existing
from pkgrepo.formats.conda.description import ABOUT as ABOUT_KEYS
from pkgrepo.formats.conda.description import record_of
from pkgrepo.formats.conda.names import CONDA, TAR_BZ2
from pkgrepo.formats.conda.versions import order_key
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Fragment, Package, Version, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_versions
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

LEVEL: Final = 3  # of zstd


VERSION: Final = 1


_pack = msgspec.msgpack.Encoder().encode


@frozen
class Shard:
    """The records of one package in one folder, as a file; ``digest`` is its sha256."""

    name: str
    digest: bytes
    body: bytes


def make_shard(name: str, tar_bz2: bytes, conda: bytes) -> Shard:
    """The shard of a package, from its records by kind of file: members of a JSON object, a comma before each."""
    content = {"packages": _records(tar_bz2), "packages.conda": _records(conda), "removed": []}
    body = zstandard.ZstdCompressor(level=LEVEL).compress(_pack(content))
    return Shard(name, hashlib.sha256(body).digest(), body)


def make_index(subdir: str, digests: Mapping[str, bytes]) -> bytes:
    """The index of a folder, from the digests of its shards by package; its addresses are relative to itself."""
    info = {"subdir": subdir, "base_url": "./", "shards_base_url": "./shards/"}
    return zstandard.ZstdCompressor(level=LEVEL).compress(_pack({"version": VERSION, "info": info, "shards": digests}))


def _records(members: bytes) -> dict[str, Any]:
    """Records as objects, with their digests as bytes."""
    found: dict[str, Any] = msgspec.json.decode(b"{%b}" % members[1:])
    for record in found.values():
        for algorithm in ("md5", "sha256"):
            if record.get(algorithm) is not None:
                record[algorithm] = bytes.fromhex(record[algorithm])
    return found


VERSIONS: Final = "versions"  # the only form: it is made of no fragments


def read_parts(reader: Reader, repository_id: int, name: str) -> tuple[MemberParts, Package]:
    """The live versions of a package of a hosted channel, and the package. :raises NotFound: no such package"""
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    return MemberParts({}, {}, versions.sorted_texts(reader, package.id)), package


def latest(members: Sequence[MemberParts]) -> Latest | None:
    """The highest version."""
    found = merge_versions(members)
    return Latest(found[-1], LatestReason.HIGHEST) if found else None


RECORD: Final = "record"
EXPORTS: Final = "exports"
ABOUT: Final = "about"

DERIVED: Final = "derived_from"  # the attribute of a file that is made of a wheel

_encode = msgspec.json.Encoder(order="sorted").encode


def index_package(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of changed files up to date, and that of the package."""
    version = change.version
    if version is not None:
        shown = version.state is not VersionState.YANKED
        whole = not change.added and not change.removed
        for file in change.removed:
            _remove(index, version, file.path)
        for file in index.files(version) if whole else change.added:
            if shown:
                _put(index, version, file, new=change.files is not None)
            else:
                _remove(index, version, file.path)
    if not change.last:
        _put_about(index, version)
        _put_derived(index, change)


def _put(index: PackageIndex, version: Version, file: File, *, new: bool) -> None:
    """Set the fragments of a file; a ``new`` version has none yet."""
    index.put_fragment(RECORD, version.sort, file.path, record_body(file))
    exports = exports_body(file)
    if exports is not None:
        index.put_fragment(EXPORTS, version.sort, file.path, exports)
    elif not new:
        index.remove_fragment(EXPORTS, version.sort, file.path)


def record_body(file: File) -> bytes:
    """The record of a file, as JSON."""
    subdir = file.path.partition("/")[0]
    record = record_of(file.attrs["index"], subdir, {**file.digests, "sha256": file.sha256}, file.size)
    if file.origin is None:  # else the record is that of the upstream, with its time
        record["indexed_timestamp"] = file.published_ms  # CEP 47
    return _encode(record)


def exports_body(file: File) -> bytes | None:
    """The entry of a file in ``run_exports.json``, as JSON; None if it has none."""
    exports = file.attrs.get("run_exports")
    return _encode(exports) if exports else None


def _remove(index: PackageIndex, version: Version, path: str) -> None:
    for kind in (RECORD, EXPORTS):
        index.remove_fragment(kind, version.sort, path)


def _put_derived(index: PackageIndex, change: Change) -> None:
    """Whether the package has files that are made of wheels; only changes of such files change it."""
    if any(DERIVED in each.attrs for each in change.added):
        packages.set_derived(index.tx, index.package.id, True)
    elif any(DERIVED in each.attrs for each in change.removed):
        left = files.files_of_package(index.tx, index.package.id)
        packages.set_derived(index.tx, index.package.id, any(DERIVED in each.attrs for each in left))


def _put_about(index: PackageIndex, changed: Version | None) -> None:
    """What the highest version says of the package."""
    version = versions.highest_live(index.tx, index.package.id, changed)
    if version is None:
        index.remove_fragment(ABOUT, b"", "")
    else:
        about = {key: version.meta[key] for key in ABOUT_KEYS if key in version.meta}
        index.put_fragment(ABOUT, b"", "", _encode({**about, "version": version.text}))


_NO_EXPORTS = b"{}"


class _Versioned(msgspec.Struct):
    version: str


_read_versions = msgspec.json.Decoder(dict[str, _Versioned]).decode


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

    def without(self, files: Set[str]) -> FolderRecords:
        """The same without some files, by their names."""
        if not files:
            return self
        return FolderRecords(self.name, _without(self.records, files), _without(self.exports, files))

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

    def without(self, paths: Set[str]) -> PackageRecords:
        """
        The same without some files, by their paths; folders without any file are left out.

        It says that its version is the highest of those that are left.
        """
        folders = {
            subdir: each.without({path.rpartition("/")[2] for path in paths if path.startswith(f"{subdir}/")})
            for subdir, each in self.folders.items()
        }
        left = {key: each for key, each in folders.items() if any(each.records.values())}
        return PackageRecords(self.name, left, _about_left(self.about, left.values()))


def read_all(reader: Reader, repository_id: int) -> list[tuple[str, PackageRecords]]:
    """The records of all packages of a channel, ordered by name."""
    exports = dict(index_documents.fragments_by_package(reader, repository_id, EXPORTS))
    about = dict(index_documents.fragments_by_package(reader, repository_id, ABOUT))
    return [
        (name, join(name, records, exports.get(name, ()), about.get(name, ())))
        for name, records in index_documents.fragments_by_package(reader, repository_id, RECORD)
    ]


def read_one(reader: Reader, repository_id: int, name: str) -> PackageRecords | None:
    """The records of one package, None if it has none."""
    package = packages.find_package(reader, repository_id, name)
    if package is None:
        return None
    records, exports, about = (
        index_documents.list_fragments(reader, package.id, kind) for kind in (RECORD, EXPORTS, ABOUT)
    )
    return join(name, records, exports, about) if records else None


def join(
    name: str, records: Sequence[Fragment], exports: Sequence[Fragment], about: Sequence[Fragment]
) -> PackageRecords:
    """The records of a package, from its fragments in order."""
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


def _about_left(about: bytes, folders: Iterable[FolderRecords]) -> bytes:
    """The entry of a package with the highest version in some of its folders, if it names one that they do not have."""
    entry: dict[str, Any] = msgspec.json.decode(about)
    versions = {
        record.version
        for folder in folders
        for text in folder.records.values()
        for record in _read_versions(b"{%b}" % text[1:]).values()
    }
    if entry.get("version") in versions:
        return about
    entry.pop("version", None)
    return _encode(entry | ({"version": max(versions, key=order_key)} if versions else {}))


def _without(texts: Mapping[str, bytes], files: Set[str]) -> dict[str, bytes]:
    """Members of JSON objects, a comma before each, by the ending of the files, without those of some names."""
    made = {}
    for ending, text in texts.items():
        members = msgspec.json.decode(b"{%b}" % text[1:], type=dict[str, msgspec.Raw])
        made[ending] = b"".join(
            b',"%b":%b' % (name.encode(), bytes(value)) for name, value in members.items() if name not in files
        )
    return made


def _joined(texts: Mapping[str, Sequence[bytes]]) -> dict[str, bytes]:
    return {ending: b"".join(some) for ending, some in texts.items()}
