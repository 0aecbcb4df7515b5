"""
Paths of a channel: the grammar of request paths, and the places of files and sidecars.

A path is split before it is decoded, and each part is decoded once, so that an encoded slash is no separator. Empty
parts are left out.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import CONDA, ENDINGS, SUBDIRS, FileName, parse_file_name

SIDECARS: Final = "packages"  # no platform is called so
_TYPES: Final = {CONDA: "application/vnd.conda.package.2"}  # the media type that OCI mirrors of channels use
_OTHER_TYPE: Final = "application/x-tar"


def package_path(subdir: str, name: FileName) -> str:
    """The public path of a package."""
    return f"{subdir}/{name}"


def media_type(name: FileName) -> str:
    """The media type of a package."""
    return media_type_of(name.ending)


def media_type_of(ending: str) -> str:
    """The media type of packages whose names end so."""
    return _TYPES.get(ending, _OTHER_TYPE)


def readable_folder(name: str) -> str:
    """The folder of a package's sidecars in the readable layout."""
    return f"{SIDECARS}/{name}"


SHARDS: Final = "shards"
SHARD_ENDING: Final = ".msgpack.zst"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@frozen
class RootPath:
    """The channel itself."""


@frozen
class ChannelPath:
    """A document of the whole channel, by its file name."""

    document: str


@frozen
class SubdirPath:
    """A folder of packages, or with a ``document`` one of its documents."""

    subdir: str
    document: str = ""


@frozen
class ShardPath:
    """The records of one package in one folder, by the digest of the file."""

    subdir: str
    sha256: str


@frozen
class PackagePath:
    """A package."""

    subdir: str
    name: FileName


Path = RootPath | ChannelPath | SubdirPath | ShardPath | PackagePath


def read_path(parts: list[str]) -> Path | None:
    """What a path means for a read, None if nothing."""
    match parts:
        case []:
            return RootPath()
        case [subdir] if subdir in SUBDIRS:
            return SubdirPath(subdir)
        case [document]:
            return ChannelPath(document)
        case [subdir, file] if subdir in SUBDIRS:
            return read_package_path(subdir, file) if file.endswith(ENDINGS) else SubdirPath(subdir, file)
        case [subdir, shards, file] if subdir in SUBDIRS and shards == SHARDS and file.endswith(SHARD_ENDING):
            sha256 = file.removesuffix(SHARD_ENDING)
            return ShardPath(subdir, sha256) if _SHA256.fullmatch(sha256) else None
        case _:
            return None


def read_package_path(subdir: str, file: str) -> PackagePath | None:
    """The path of a package, None if no package is called so."""
    try:
        return PackagePath(subdir, parse_file_name(file))
    except Invalid:
        return None
