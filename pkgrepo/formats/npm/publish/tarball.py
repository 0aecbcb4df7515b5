"""
Inspection of a package's tarball without unpacking it to the disk.

Clients resolve dependencies by the manifest that was sent beside the tarball, but run the code in the tarball: both
must be of the same version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.source import LIMITS, ArchiveLimits, Source, check_entry_name
from pkgrepo.archives.streams import Gunzip
from pkgrepo.archives.tar_archive import Member, Tar
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.limits import MANIFEST_SIZE, MANIFEST_VALUES, README_LENGTH
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

MANIFEST: Final = "package.json"

_README: Final = re.compile(r"readme(\.md|\.markdown|\.txt)?", re.IGNORECASE)
_BOM: Final = b"\xef\xbb\xbf"


@frozen
class TarballContents:
    """
    The contents of a tarball: its package.json, the number of its files, and the sum of their sizes in bytes.

    With ``has_gyp`` npm compiles the package on install, also when it has no install script; ``has_shrinkwrap`` means
    that the package pins its dependencies. The readme is empty unless it was asked for.
    """

    manifest: Mapping[str, Any]
    file_count: int
    unpacked_size: int
    has_gyp: bool
    has_shrinkwrap: bool
    readme_filename: str = ""
    readme: str = ""


def inspect_tarball(file: int | bytes, filename: str, name: str, version: Version) -> TarballContents:
    """
    The contents of a tarball, given as a file descriptor (which stays open) or as bytes.

    It reads and decompresses all of it: call it in a thread. ``filename`` is for error messages.

    :raises Invalid: the tarball is damaged, unsafe to unpack, or of another package or version
    """
    contents = read_tarball(file, filename)
    _check_identity(Source(file, filename), contents.manifest, name, version)
    return contents


def read_tarball(
    file: int | bytes, filename: str, *, readme: bool = False, limits: ArchiveLimits = LIMITS
) -> TarballContents:
    """
    The contents of a tarball of any package, as above; with ``readme`` also the text of its readme.

    :raises Invalid: the tarball is damaged, or unsafe to unpack
    """
    source = Source(file, filename, limits)
    found_readme = ("", "")
    file_count = unpacked_size = 0
    at_root: set[str] = set()
    manifest: Mapping[str, Any] | None = None
    tar = Tar(source, Gunzip(source))
    for member in tar:
        inner = _inner_name(source, member)
        if member.is_file:
            file_count += 1
            unpacked_size += member.size
            if "/" not in inner:
                at_root.add(inner)
        if inner == MANIFEST:
            if manifest is not None or not member.is_file:
                raise source.refuse(f"must have one {MANIFEST}, which is a plain file")
            manifest = _read_manifest(source, tar.read(MANIFEST_SIZE))
        elif readme and member.is_file and _README.fullmatch(inner) and not found_readme[0]:
            found_readme = inner, next(tar.pieces(), b"")[:README_LENGTH].decode("utf-8", "replace")
    if manifest is None:
        raise source.refuse(f"has no {MANIFEST} in its folder")
    return TarballContents(
        manifest=manifest,
        file_count=file_count,
        unpacked_size=unpacked_size,
        has_gyp="binding.gyp" in at_root,
        has_shrinkwrap="npm-shrinkwrap.json" in at_root,
        readme_filename=found_readme[0],
        readme=found_readme[1],
    )


def differing_fields(published: Mapping[str, Any], contents: TarballContents) -> list[str]:
    """
    The fields of ``dependencies``, ``scripts`` and ``bin`` that differ between the sent manifest and the packed one.

    Entries that npm itself adds or normalises are no difference.
    """
    inside = contents.manifest
    pairs = {
        "dependencies": (_dependencies(published), _dependencies(inside)),
        "scripts": (_scripts(published, contents), _scripts(inside, contents)),
        "bin": (_bin(published), _bin(inside)),
    }
    return [field for field, (left, right) in pairs.items() if left != right]


def _inner_name(source: Source, member: Member) -> str:
    """A member's path in the installed package: clients drop the first part, whatever its name."""
    first, _, inner = member.name.partition("/")
    rest = (inner if first == "." else member.name).rstrip("/")
    if rest:
        check_entry_name(source, rest)
    return inner.rstrip("/")


def _read_manifest(source: Source, data: bytes) -> Mapping[str, Any]:
    try:
        check_value_count(data, MANIFEST_VALUES, "it")
        # Editors on Windows write a byte order mark, and npm ignores it.
        return decode_as(data.removeprefix(_BOM), dict[str, Any], what="it")
    except Invalid as error:
        raise source.refuse(f"has a {MANIFEST} that cannot be read: {error}") from None


def _check_identity(source: Source, manifest: Mapping[str, Any], name: str, version: Version) -> None:
    packed_name, packed_version = manifest.get("name"), manifest.get("version")
    if packed_name != name:
        raise source.refuse(f"is of package {names.quoted_or_nothing(packed_name)}, not {name!r}")
    if not semver.is_same(packed_version, version):
        raise source.refuse(f"is of version {names.quoted_or_nothing(packed_version)}, not {version.text!r}")


def _dependencies(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The required dependencies: npm copies the optional ones into the same field."""
    optional = _mapping(manifest, "optionalDependencies")
    return {name: wanted for name, wanted in _mapping(manifest, "dependencies").items() if name not in optional}


def _scripts(manifest: Mapping[str, Any], contents: TarballContents) -> Mapping[str, Any]:
    """The scripts with the one that npm adds to a package that has a binding.gyp."""
    added = {"install": "node-gyp rebuild"} if contents.has_gyp else {}
    scripts = _mapping(manifest, "scripts")
    return scripts if "preinstall" in scripts else {**added, **scripts}


def _bin(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The programs by name. A bare path is a program named as the package; paths may begin with ``./``."""
    value = manifest.get("bin")
    if isinstance(value, str):
        value = {str(manifest.get("name")).rpartition("/")[2]: value}
    if not isinstance(value, dict):
        return {}
    return {
        name.rpartition("/")[2]: path.removeprefix("./").lstrip("/")
        for name, path in value.items()
        if isinstance(path, str)
    }


def _mapping(manifest: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = manifest.get(field)
    return value if isinstance(value, dict) else {}
