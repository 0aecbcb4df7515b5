"""
What a channel lacks of the wheels of one Python package, and what it has too much.

A converted package knows its wheel: the attribute ``derived_from`` of its file has the wheel's path and sha256. So what
is to be done follows from what both repositories have now, whatever happened before, and doing it twice does nothing.

=======================  ================================================================================
wheel                    package in the channel
=======================  ================================================================================
published                converted, unless it is recorded that it cannot be
yanked                   yanked; removed, if the version also has packages of other origins
removed, replaced        removed
=======================  ================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Factory, frozen
from packaging.utils import canonicalize_name

from pkgrepo.formats.conda.index.records import DERIVED
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Version, VersionState
from pkgrepo.storage.catalog.packages import files, followed_wheels, packages, versions
from pkgrepo.storage.gil import GilReleaser

from .names import conda_name

WHEEL: Final = ".whl"


@frozen
class Difference:
    """
    Of the conda package ``package``: wheels to convert; paths to remove and states to set, by version key.

    ``states`` has states with their reasons. ``forgotten`` are paths of wheels that are recorded and are gone.
    """

    package: str
    missing: Sequence[File] = ()
    surplus: Mapping[str, Sequence[str]] = Factory(dict)
    states: Mapping[str, tuple[VersionState, str]] = Factory(dict)
    forgotten: Sequence[str] = ()


def derived_from(wheel: File) -> Mapping[str, Any]:
    """The attribute of the package that is made of a wheel."""
    return {DERIVED: {"path": wheel.path, "sha256": wheel.sha256}}


def compare_packages(
    r: Reader, parent_id: int, channel_id: int, keys: Sequence[str], converting: bool
) -> Mapping[str, Difference]:
    """
    Compare Python packages with the conda packages of theirs, by key; without ``converting`` these shall have none.

    A package of thousands of wheels takes some 100 ms: call it on a reader thread.
    """
    found: dict[str, Difference] = {}
    gil = GilReleaser()
    for key in keys:
        gil.release_if_due()
        found[key] = _compare(r, parent_id, channel_id, key, conda_name(key), converting)
    return found


def _compare(r: Reader, parent_id: int, channel_id: int, key: str, name: str, converting: bool) -> Difference:
    every = [each for each in _files(r, parent_id, key) if each[0].path.endswith(WHEEL)] if converting else []
    wheels = {(file.path, file.sha256): (file, version) for file, version in every if file.role is None}
    recorded = {each.path: each.sha256 for each in followed_wheels.unconverted_of(r, channel_id, key)}
    mixed: set[str] = set()
    present: dict[tuple[str, str], tuple[File, Version]] = {}
    for file, version in _files(r, channel_id, name):
        origin = file.attrs.get(DERIVED)
        if origin is None or not _is_of(origin["path"], key):
            mixed.add(version.key)
        else:
            present[origin["path"], origin["sha256"]] = file, version
    surplus: dict[str, list[str]] = {}
    states: dict[str, tuple[VersionState, str]] = {}
    for place, (file, version) in present.items():
        of = wheels.get(place)
        state = VersionState.LIVE if of is None else _shown_state(of[1])
        if of is None or (state is VersionState.YANKED and version.key in mixed):
            surplus.setdefault(version.key, []).append(file.path)
        elif state is not version.state and version.key not in mixed:
            states[version.key] = state, of[1].reason
    missing = [
        file
        for place, (file, version) in wheels.items()
        if place not in present and _shown_state(version) is VersionState.LIVE and recorded.get(place[0]) != place[1]
    ]
    paths = {path for path, _ in wheels}
    return Difference(name, missing, surplus, states, [path for path in recorded if path not in paths])


def _is_of(wheel_path: str, key: str) -> bool:
    """Whether a wheel is of this project: wheels of several may become packages of one name, as of two OpenCVs."""
    return canonicalize_name(wheel_path.rpartition("/")[2].partition("-")[0]) == key


def _shown_state(version: Version) -> VersionState:
    return VersionState.YANKED if version.state is VersionState.YANKED else VersionState.LIVE


def _files(r: Reader, repository_id: int, key: str) -> list[tuple[File, Version]]:
    """The files of a package with their versions."""
    package = packages.find_package(r, repository_id, key)
    if package is None:
        return []
    by_id = {each.id: each for each in versions.list_versions(r, package.id)}
    found = files.files_of_package(r, package.id)
    return [(each, by_id[each.version_id]) for each in found if each.version_id is not None]
