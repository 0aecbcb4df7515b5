"""Reads the gems of one hosted repository from the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pkgrepo.formats.rubygems.names import is_prerelease
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Version, VersionState
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.gil import GilReleaser

from .records import Release

_LOOKED_AT = 50  # live versions, the newest ones, among which the latest one is looked for


def find_latest(r: Reader, repository_id: int, name: str) -> Release | None:
    """The latest live version of a gem; None if there is no such gem, or all its versions are yanked."""
    package = packages.find_package(r, repository_id, name)
    version = None if package is None else latest_version(r, package.id)
    return None if version is None else _release(r, version)


def latest_version(r: Reader, package_id: int) -> Version | None:
    """The highest live version that is no prerelease, else the highest live one, for Ruby rather than a platform."""
    keys = versions.newest_keys(r, package_id, VersionState.LIVE, _LOOKED_AT)
    best = next((key for key in keys if not is_prerelease(_number(key))), keys[0] if keys else None)
    if best is None:
        return None
    plain = _number(best)
    return versions.find_version(r, package_id, plain if plain in keys else best)


def find_version(r: Reader, repository_id: int, name: str, key: str) -> Release | None:
    """One live version of a gem by its key, or None."""
    package = packages.find_package(r, repository_id, name)
    version = None if package is None else versions.find_version(r, package.id, key)
    return None if version is None or version.state is not VersionState.LIVE else _release(r, version)


def list_releases(r: Reader, repository_id: int, name: str) -> list[Release] | None:
    """All live versions of a gem, the highest first; None if there is no such gem. Use a thread."""
    package = packages.find_package(r, repository_id, name)
    return None if package is None else list(_releases(r, package))


def latest_of_each(r: Reader, repository_id: int, names: Iterable[str]) -> list[Release]:
    """The latest live versions of some gems, in the order of the names. Use a thread."""
    found = (find_latest(r, repository_id, name) for name in names)
    return [each for each in found if each is not None]


def _releases(r: Reader, package: Package) -> Iterator[Release]:
    sums = {each.version_id: each.sha256 for each in files.files_of_package(r, package.id) if each.role is None}
    gil = GilReleaser()
    for version in reversed(versions.list_versions(r, package.id)):
        if version.state is VersionState.LIVE and version.id in sums:
            yield Release.of(version, sums[version.id])
        gil.release_if_due()


def _release(r: Reader, version: Version) -> Release | None:
    gem = next((each for each in files.files_of_version(r, version.id) if each.role is None), None)
    return None if gem is None else Release.of(version, gem.sha256)


def _number(key: str) -> str:
    """The number in the key of a version, whose platform, if it has one, is behind the first dash."""
    return key.partition("-")[0]
