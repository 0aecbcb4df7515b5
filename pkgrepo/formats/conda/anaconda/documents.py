"""What anaconda-client shows of packages, versions and files, as it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, Version
from pkgrepo.storage.catalog.packages import files, packages, versions

from .targets import FileTarget, PackageTarget, ReleaseTarget

MOST_SHOWN: Final = 1000  # versions of a package, and files: the newest ones

_KIND: Final = "conda"  # of packages and files; the client knows others


def read_package(r: Reader, repository: Repository, target: PackageTarget) -> dict[str, Any]:
    """A package with its newest versions and their files. :raises NotFound: there is none"""
    package = existing(packages.find_package(r, repository.id, target.name), "package", target.name)
    newest = versions.list_versions(r, package.id)[-MOST_SHOWN:]
    by_id = {each.id: each for each in newest}
    shown: list[dict[str, Any]] = []
    for version in reversed(newest):
        if len(shown) >= MOST_SHOWN:
            break
        shown += [_file(file, version) for file in files.files_of_version(r, version.id)]
    texts = [each.text for each in newest]
    public = not repository.is_private
    about = newest[-1].meta if newest else {}
    return {
        "name": package.name,
        "full_name": f"{target.owner}/{package.name}",
        "owner": {"login": target.owner},
        "public": public,
        "summary": about.get("summary", ""),
        "package_types": [_KIND],
        "latest_version": texts[-1] if texts else "",
        "versions": texts,
        "releases": [{"version": each.text} for each in by_id.values()],
        "files": shown[:MOST_SHOWN],
    }


def read_release(r: Reader, repository: Repository, target: ReleaseTarget) -> dict[str, Any]:
    """A version with its files. :raises NotFound: there is none"""
    version = _version(r, repository, target)
    return {
        "version": version.text,
        "distributions": [_file(file, version) for file in files.files_of_version(r, version.id)[:MOST_SHOWN]],
        "public_attrs": _texts(version),
    }


def read_file(r: Reader, repository: Repository, target: FileTarget) -> dict[str, Any]:
    """A file. :raises NotFound: there is none"""
    file = existing(files.find_file(r, repository.id, target.path), "file", target.path)
    return _file(file, _version(r, repository, target)) | {"attrs": file.attrs.get("index", {})}


def _version(r: Reader, repository: Repository, target: ReleaseTarget | FileTarget) -> Version:
    package = existing(packages.find_package(r, repository.id, target.name), "package", target.name)
    found = versions.find_version(r, package.id, target.version_key)
    return existing(found, "version", f"{target.name} {target.version_key}")


def _file(file: File, version: Version) -> dict[str, Any]:
    return {
        "basename": file.path,
        "version": version.text,
        "type": _KIND,
        "description": _texts(version).get("description", ""),
        "size": file.size,
        "sha256": file.sha256,
        "md5": file.digests.get("md5"),
        "upload_time": file.created_at.isoformat(),
    }


def _texts(version: Version) -> Mapping[str, Any]:
    return {key: version.meta[key] for key in ("summary", "description", "license") if key in version.meta}
