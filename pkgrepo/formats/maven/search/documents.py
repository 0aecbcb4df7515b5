"""What a search tells of an artifact, or of one of its versions, read from the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Repository, RepositoryType, Version
from pkgrepo.storage.catalog.packages import matches, packages, versions
from pkgrepo.storage.catalog.packages.matches import Match
from pkgrepo.storage.catalog.packages.tree import list_files

MOST_FILES: Final = 200  # of a version, whose endings are shown


@frozen
class Page:
    """A page of documents, and the number of all."""

    documents: list[dict[str, Any]]
    total: int


def find_artifacts(
    r: Reader, repositories: Sequence[Repository], match: Match, start: int, rows: int, readable: frozenset[str] | None
) -> Page:
    """The artifacts that match; ``readable`` are the only keys that may be shown, None for all."""
    ids = [each.id for each in repositories]
    if readable is None:
        total = matches.count_packages(r, ids, match)
        keys = matches.matching_packages(r, ids, match, start, rows)
    else:
        shown = sorted(readable)
        total, keys = len(shown), shown[start : start + rows]
    return Page([each for key in keys for each in _artifact(r, repositories, key)], total)


def find_artifact_versions(
    r: Reader,
    repositories: Sequence[Repository],
    match: Match,
    start: int,
    rows: int,
    readable: frozenset[str] | None,
    *,
    joined: bool,
) -> Page:
    """
    The versions that match, like ``find_artifacts``.

    With ``joined`` the repositories are one to clients: of an artifact that a hosted one has, versions of others are
    left out, though counted.
    """
    ids = [each.id for each in repositories]
    if readable is None:
        total = matches.count_versions(r, ids, match)
        found = matches.matching_versions(r, ids, match, start, rows)
    else:
        every = [each for each in matches.matching_versions(r, ids, match, 0, 10_000) if each[0] in readable]
        total, found = len(every), every[start : start + rows]
    return Page([each for key, version in found for each in _version(r, repositories, key, version, joined)], total)


def _artifact(r: Reader, repositories: Sequence[Repository], key: str) -> list[dict[str, Any]]:
    for repository in repositories:
        package = packages.find_package(r, repository.id, key)
        latest = None if package is None else versions.find_highest(r, package.id)
        if package is not None and latest is not None:
            count = versions.count_versions(r, package.id)
            shown = _document(r, repository, package, latest)
            return [{"id": key, **shown, "latestVersion": latest.text, "versionCount": count}]
    return []


def _version(
    r: Reader, repositories: Sequence[Repository], key: str, version_key: str, joined: bool
) -> list[dict[str, Any]]:
    owned = False
    for repository in repositories:
        package = packages.find_package(r, repository.id, key)
        if joined and owned and repository.type is not RepositoryType.HOSTED:
            break
        owned = owned or (package is not None and repository.type is RepositoryType.HOSTED)
        version = None if package is None else versions.find_version(r, package.id, version_key)
        if package is not None and version is not None:
            shown = _document(r, repository, package, version)
            return [{"id": f"{key}:{version.text}", **shown, "v": version.text}]
    return []


def _document(r: Reader, repository: Repository, package: Package, version: Version) -> dict[str, Any]:
    group, _, artifact = package.key.partition(":")
    directory = Coordinates(group, artifact, version.text).directory
    some = list_files(r, repository.id, directory, "", MOST_FILES)
    endings = {_ending(file.attrs) for file in some if file.role is None and file.version_id == version.id}
    return {
        "g": group,
        "a": artifact,
        "repositoryId": repository.path,
        "p": version.meta.get("packaging", "jar"),
        "timestamp": round(version.published_at.timestamp() * 1000),
        "text": [group, artifact],
        "ec": sorted(endings),
    }


def _ending(attrs: Mapping[str, Any]) -> str:
    classifier = attrs.get("classifier")
    return (f"-{classifier}" if classifier else "") + f".{attrs.get('extension', '')}"
