"""
What a path means that is to be deleted.

======================  ===============================================================================================
path                    what is removed
======================  ===============================================================================================
a file                  the file with its signatures; checksums go with it, since they are computed
``g/a/v``               the version with all its files
``g/a/v/<number>``      the files of one build of a snapshot
``g/a``                 the artifact with all its versions
======================  ===============================================================================================

A path that is a version and an artifact at once means the version.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.formats.maven.paths import ROLES, Directory, FilePath, coordinates_of, package_key_of
from pkgrepo.interfaces import Reader
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages import files, packages, versions


@frozen
class Removal:
    """
    What a path means: files at ``paths`` of a version, all of the version if that is None, or all of the package if
    there is no ``version``. Without ``package`` it is a plain file.
    """

    package: str | None = None
    version: str | None = None
    paths: tuple[str, ...] | None = None


def find_removal(r: Reader, repository_id: int, target: FilePath | Directory) -> Removal | None:
    """What is removed by a DELETE of this path; None if there is nothing."""
    file = None if isinstance(target, Directory) else files.find_file(r, repository_id, target.path)
    if file is not None:
        return _file_removal(r, file)
    segments = target.path.split("/")
    return (
        _version_removal(r, repository_id, segments)
        or _build_removal(r, repository_id, segments)
        or _package_removal(r, repository_id, segments)
    )


def _file_removal(r: Reader, file: File) -> Removal:
    """The removal of a file with its signatures, which may be signed in turn."""
    coordinates = None if file.package_id is None else coordinates_of(file.path.split("/")[:-1])
    if coordinates is None:
        return Removal()
    endings = (*ROLES, *(first + second for first in ROLES for second in ROLES))
    found = (files.find_file(r, file.repository_id, file.path + each) for each in endings)
    signatures = (each.path for each in found if each is not None and each.role is not None)
    return Removal(coordinates.package_key, coordinates.version, (file.path, *signatures))


def _version_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    coordinates = coordinates_of(segments)
    if coordinates is None:
        return None
    package = packages.find_package(r, repository_id, coordinates.package_key)
    if package is None or versions.find_version(r, package.id, coordinates.version) is None:
        return None
    return Removal(package.key, coordinates.version)


def _build_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    *directory, number = segments
    coordinates = coordinates_of(directory)
    if coordinates is None or not (number.isascii() and number.isdigit() and len(number) < 10):
        return None
    package = packages.find_package(r, repository_id, coordinates.package_key)
    version = None if package is None else versions.find_version(r, package.id, coordinates.version)
    if version is None:
        return None
    held = files.files_of_version(r, version.id)
    paths = tuple(each.path for each in held if each.attrs.get("build") == int(number))
    return Removal(coordinates.package_key, coordinates.version, paths) if paths else None


def _package_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    key = package_key_of(segments)
    found = key is not None and packages.find_package(r, repository_id, key) is not None
    return Removal(key) if found else None
