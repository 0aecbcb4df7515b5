"""
The JSON documents of a channel as pieces of text, joined from what the channel has in memory of each package.

``current_repodata.json`` has the newest version of each package, and what these need. Conda's classic solver asks for
it first, and for all records only if it finds no solution in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.formats.conda.index.packages import FolderRecords, PackageRecords
from pkgrepo.formats.conda.names import CONDA, SUBDIRS, TAR_BZ2
from pkgrepo.formats.conda.versions import order_key, satisfies, split_dependency
from pkgrepo.repositories.publish.package_lists import PackageList

Text = Callable[[FolderRecords, str], bytes]  # of the files with an ending


Packages = PackageList[PackageRecords]


CHANNELDATA_VERSION: Final = 1


CHANNELDATA_HEAD: Final = b'{"channeldata_version":%d,"packages":{' % CHANNELDATA_VERSION


TAIL: Final = b'},"removed":[],"repodata_version":1}'  # of repodata


EXPORTS_TAIL: Final = b"}}"  # of run exports


def folder_head(subdir: str) -> bytes:
    """The head of a document of a folder, up to its records of the older kind of files."""
    return b'{"info":{"subdir":%b},"packages":{' % msgspec.json.encode(subdir)


def folder_text(packages: Packages, subdir: str, text: Text, tail: bytes) -> list[bytes]:
    """A document of a folder: an object for each kind of file, and a ``tail`` after the last one."""
    return [
        folder_head(subdir),
        *_members(packages, subdir, TAR_BZ2, text),
        b'},"packages.conda":{',
        *_members(packages, subdir, CONDA, text),
        tail,
    ]


def repodata_text(packages: Packages, subdir: str) -> list[bytes]:
    """``repodata.json`` of a folder."""
    return folder_text(packages, subdir, lambda folder, ending: folder.records[ending], TAIL)


def exports_text(packages: Packages, subdir: str) -> list[bytes]:
    """``run_exports.json`` of a folder (CEP 12)."""
    return folder_text(packages, subdir, lambda folder, ending: folder.exports[ending], EXPORTS_TAIL)


def channeldata_text(packages: Packages) -> list[bytes]:
    """``channeldata.json`` of the channel (CEP 38)."""
    entries = [channeldata_entry(package) for package in packages.values()]
    found = {subdir for package in packages.values() for subdir in package.folders}
    subdirs = msgspec.json.encode([subdir for subdir in SUBDIRS if subdir in found or subdir == SUBDIRS[0]])
    return [CHANNELDATA_HEAD, *_without_first_comma(entries), b'},"subdirs":', subdirs, b"}"]


def _members(packages: Packages, subdir: str, ending: str, text: Text) -> list[bytes]:
    chunks = (
        b"".join(text(package.folders[subdir], ending) for package in chunk if subdir in package.folders)
        for chunk in packages.chunks()
    )
    return _without_first_comma(chunks)


def _without_first_comma(texts: Iterable[bytes]) -> list[bytes]:
    found = [each for each in texts if each]
    return [found[0][1:], *found[1:]] if found else []


def channeldata_entry(package: PackageRecords) -> bytes:
    """The entry of a package in ``channeldata.json``, with a comma before it."""
    subdirs = msgspec.json.encode(sorted(package.folders))
    about = package.about[1:-1]
    return b',"%b":{%b%b"subdirs":%b}' % (package.name.encode(), about, b"," if about else b"", subdirs)


_ENDINGS: Final = (TAR_BZ2, CONDA)

_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Fields(msgspec.Struct):
    version: str
    depends: list[str] = []


_read_fields = msgspec.json.Decoder(_Fields).decode


@frozen
class _Entry:
    file: str
    record: msgspec.Raw
    depends: list[str]


@define(eq=False)
class _Package:
    """The files of a package by version, from the newest one on; ``kept`` are versions that the document shows."""

    versions: Mapping[str, list[_Entry]]
    kept: set[str] = Factory(set)

    def choose(self, constraint: str) -> str | None:
        """The version to be added for a dependency, None if one is there or none would do."""
        if any(satisfies(each, constraint) for each in self.kept):
            return None
        return next((each for each in self.versions if satisfies(each, constraint)), None)


def current_text(packages: Packages, subdir: str) -> list[bytes]:
    """The document of a folder. Blocks: 10 us for each record of the folder."""
    gil = GilReleaser()
    found: dict[str, _Package] = {}
    for package in packages.values():
        gil.release_if_due()
        if subdir in package.folders:
            found[package.name] = _read(package.folders[subdir].records)
    waiting: list[_Entry] = []
    for each in found.values():
        newest = next(iter(each.versions))
        each.kept.add(newest)
        waiting += each.versions[newest]
    while waiting:
        gil.release_if_due()
        for dependency in waiting.pop().depends:
            waiting += _add(found, dependency)
    return [folder_head(subdir), _join(found, TAR_BZ2), b'},"packages.conda":{', _join(found, CONDA), TAIL]


def _read(records: Mapping[str, bytes]) -> _Package:
    versions: dict[str, list[_Entry]] = {}
    for ending in _ENDINGS:
        for file, record in _read_members(b"{%b}" % records[ending][1:]).items():
            fields = _read_fields(record)
            versions.setdefault(fields.version, []).append(_Entry(file, record, fields.depends))
    return _Package({each: versions[each] for each in sorted(versions, key=order_key, reverse=True)})


def _add(found: Mapping[str, _Package], dependency: str) -> list[_Entry]:
    """The files of the version that is added for a dependency; none if that is satisfied, or cannot be read."""
    with suppress(ValueError):
        name, constraint = split_dependency(dependency)
        package = found.get(name)
        version = None if package is None else package.choose(constraint)
        if package is not None and version is not None:
            package.kept.add(version)
            return package.versions[version]
    return []


def _join(found: Mapping[str, _Package], ending: str) -> bytes:
    kept = (entry for each in found.values() for version in each.kept for entry in each.versions[version])
    return b",".join(b'"%b":%b' % (each.file.encode(), each.record) for each in kept if each.file.endswith(ending))
