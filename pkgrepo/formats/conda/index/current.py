"""
``current_repodata.json``: the newest version of each package, and what these need.

Conda's classic solver asks for it first, and for all records only if it finds no solution in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.formats.conda.names import CONDA, TAR_BZ2
from pkgrepo.formats.conda.version_order import order_key
from pkgrepo.formats.conda.version_spec import satisfies, split_dependency
from pkgrepo.storage.gil import GilReleaser

from .texts import TAIL, Packages, folder_head

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
