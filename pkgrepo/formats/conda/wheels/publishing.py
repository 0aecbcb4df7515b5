"""
What a channel lacks of the wheels of a Python package, their conversion, and the publication of the packages.

A converted package knows its wheel: the attribute ``derived_from`` of its file has the wheel's path and sha256. So what
is to be done follows from what both repositories have now, whatever happened before, and doing it twice does nothing.

=======================  ================================================================================
wheel                    package in the channel
=======================  ================================================================================
published                converted, unless it is recorded that it cannot be
yanked                   yanked; removed, if the version also has packages of other origins
removed, replaced        removed
=======================  ================================================================================

Small wheels share the hop to a thread, the fsync calls of their packages, and the transaction. A wheel that cannot be
converted, or whose package is refused, does not stop the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, evolve, frozen
from packaging.utils import canonicalize_name
from twisted.logger import Logger

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import FileBurned, FileExists, Invalid, PkgrepoError
from pkgrepo.formats.conda.files import DIGESTS, Upload, make_release
from pkgrepo.formats.conda.index.packages import DERIVED, index_package
from pkgrepo.formats.conda.names import WHEEL_SIZE
from pkgrepo.formats.conda.wheels.conversion import Converted, convert_wheel, read_wheel_name
from pkgrepo.formats.conda.wheels.requirements import conda_name
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, Version, VersionState
from pkgrepo.model.packages import PUBLISHED_MS
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish_policy import publish_policy
from pkgrepo.storage.catalog.packages import files, followed_wheels, packages, versions

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


log = Logger()

AT_ONCE: Final = 32  # wheels; a thread converts small ones for 10 ms, and one transaction with their packages takes 10
BYTES_AT_ONCE: Final = 8 * 1024 * 1024  # of wheels in memory; a larger one is converted alone


@frozen
class _ReadWheel:
    """A wheel with its bytes."""

    wheel: File
    filename: str
    data: bytes


async def publish_wheels(services: Services, channel: Repository, wheels: Sequence[File]) -> dict[str, Exception]:
    """
    Publish the packages of wheels. Returns the errors by the paths of those wheels that have none now.

    An L{Invalid}, L{FileExists} or L{FileBurned} is for ever; what another error prevented can be tried again.
    """
    failed: dict[str, Exception] = {}
    for some in _groups(wheels):
        failed |= await _publish(services, channel, some)
    return failed


def is_final(error: Exception) -> bool:
    """Whether the same wheel would fail again."""
    return isinstance(error, Invalid | FileExists | FileBurned)


def _groups(wheels: Sequence[File]) -> Iterator[Sequence[File]]:
    some: list[File] = []
    size = 0
    for each in wheels:
        if some and (len(some) == AT_ONCE or size + each.size > BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(each)
        size += each.size
    if some:
        yield some


async def _publish(services: Services, channel: Repository, wheels: Sequence[File]) -> dict[str, Exception]:
    failed: dict[str, Exception] = {}
    read: list[_ReadWheel] = []
    for each in wheels:
        try:
            read.append(await _read(services, each))
        except PkgrepoError as error:
            failed[each.path] = error
    converted = await services.pools.cpu(_convert, read) if read else []
    policy = publish_policy(channel)
    made: list[str] = []
    releases: list[Release] = []
    async with services.content.stage(channel) as staged:
        for of, package in zip(read, converted, strict=True):
            if isinstance(package, Invalid):
                failed[of.wheel.path] = package
                continue
            blob = await staged.store(package.data, DIGESTS)
            published_ms = of.wheel.published_ms
            derived = {**derived_from(of.wheel), PUBLISHED_MS: published_ms}
            release = make_release(Upload(package.name, None, blob, derived=derived), package.description, policy)
            releases.append(evolve(release, published_ms=published_ms))
            made.append(of.wheel.path)
        if releases:
            outcomes = await services.content.keep_together(
                channel, releases, staged, admit_server(Road.CONVERSION, channel), index_package
            )
            failed |= {path: each for path, each in zip(made, outcomes, strict=True) if isinstance(each, Exception)}
    return failed


async def _read(services: Services, wheel: File) -> _ReadWheel:
    filename = wheel.path.rpartition("/")[2]
    read_wheel_name(filename)  # most wheels that cannot be converted need not be read
    if wheel.size > WHEEL_SIZE:
        raise Invalid(f"it is larger than {WHEEL_SIZE} bytes", "content")
    return _ReadWheel(wheel, filename, await services.files.read(wheel.storage_id, wheel.locator, wheel.size))


def _convert(wheels: Sequence[_ReadWheel]) -> list[Converted | Invalid]:
    """Runs on a thread."""
    gil = GilReleaser()
    found: list[Converted | Invalid] = []
    for each in wheels:
        gil.release_if_due()
        try:
            found.append(convert_wheel(each.data, each.filename, each.wheel.published_ms))
        except Invalid as error:
            found.append(error)
        except Exception:  # noqa: BLE001 - a wheel that finds a fault of ours must not hold up the channel for ever
            log.failure("the wheel {filename} could not be converted", filename=each.filename)
            found.append(Invalid("a fault of this server prevented it; its log says which", "content"))
    return found
