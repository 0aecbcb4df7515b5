"""
Reads what a package says of itself from its file: the ``info`` folder of the two kinds of archives.

Nothing is unpacked. ``read_package`` blocks, and is called in a thread.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.archives.source import Source, check_entry_name
from pkgrepo.archives.streams import Bunzip2, Unzstd
from pkgrepo.archives.tar_archive import Member, Stream, Tar
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.conda.description import Description, check_file_name, parse_description
from pkgrepo.formats.conda.names import (
    ABOUT_SIZE,
    BZ2,
    CONDA,
    EXPORTS_SIZE,
    INDEX_SIZE,
    INFO_SIZE,
    METADATA_SIZE,
    Bz2Limits,
    FileName,
)
from pkgrepo.untrusted.strict_json import ERRORS

INDEX: Final = "info/index.json"
ABOUT: Final = "info/about.json"
EXPORTS: Final = "info/run_exports.json"
LIMITS: Final = {INDEX: INDEX_SIZE, ABOUT: ABOUT_SIZE, EXPORTS: EXPORTS_SIZE}  # bytes

_FOLDER: Final = "info/"


def read_info(source: Source, stream: Stream, *, whole: bool) -> dict[str, bytes]:
    """
    The documents by their paths.

    With ``whole`` the archive must have nothing but the folder, and is read to its end. Otherwise the reading stops
    behind the folder: the tools write it first.

    :raises Invalid: the archive is damaged, has no ``index.json``, or has a document twice
    """
    found: dict[str, bytes] = {}
    tar = Tar(source, stream)
    for member in tar:
        name = member.name.removeprefix("./")
        if not name.startswith(_FOLDER) and name + "/" not in (_FOLDER, "./", "/"):
            if INDEX in found and not whole:
                break
            if whole:
                raise source.refuse(f"has a member {name[:100]!a} in its info archive, which is not in the folder info")
            continue
        if not member.is_folder:
            check_entry_name(source, name)
        if name in LIMITS:
            _check_document(source, member, name, found)
            found[name] = tar.read(LIMITS[name])
    if INDEX not in found:
        raise source.refuse(f"has no {INDEX}")
    return found


def _check_document(source: Source, member: Member, name: str, found: dict[str, bytes]) -> None:
    if not member.is_file:
        raise source.refuse(f"has a {name} that is no file")
    if name in found:
        raise source.refuse(f"has {name} twice")


METADATA: Final = "metadata.json"
VERSION: Final = 2  # of the .conda format (CEP 35)


class _Metadata(msgspec.Struct):
    conda_pkg_format_version: int


def read_package(file: int | bytes, name: FileName, limits: Bz2Limits = BZ2) -> Description:
    """
    What a package says of itself, given as a file descriptor (which stays open) or as bytes. Blocks: use a thread.

    :raises Invalid: it is damaged, exceeds a limit, or is another package than ``name`` says
    """
    source = Source(file, str(name))
    documents = _read_conda(source, name) if name.ending == CONDA else _read_tar_bz2(source, limits)
    description = parse_description(documents[INDEX], documents.get(ABOUT), documents.get(EXPORTS))
    check_file_name(description.index, name)
    return description


def _read_conda(source: Source, name: FileName) -> dict[str, bytes]:
    """The documents in a ``.conda`` file: a zip archive of two tar archives and a version (CEP 35)."""
    archive = ZipArchive(source)
    info, payload = f"info-{name.stem}.tar.zst", f"pkg-{name.stem}.tar.zst"
    for member in (METADATA, info, payload):
        if member not in archive.entries:
            raise source.refuse(f"has no {member}")
    for entry in archive.entries.values():
        if entry.packed != entry.size:
            raise source.refuse(f"has a member {entry.name[:100]!a} that is compressed again")
        if entry.name.endswith(".tar.zst") and entry.name not in (info, payload):
            raise source.refuse(f"has a member {entry.name[:100]!a}, which is of another package")
    _check_version(source, archive.read(METADATA, METADATA_SIZE) or b"")
    packed = archive.read(info, INFO_SIZE) or b""
    inner = Source(packed, f"{info} in {source.name}")
    return read_info(inner, Unzstd(inner), whole=True)


def _read_tar_bz2(source: Source, limits: Bz2Limits) -> dict[str, bytes]:
    return read_info(source, Bunzip2(source, most_packed=limits.packed, most=limits.unpacked), whole=False)


def _check_version(source: Source, data: bytes) -> None:
    try:
        metadata = msgspec.json.decode(data, type=_Metadata)
    except ERRORS:
        raise source.refuse(f"has a malformed {METADATA}") from None
    if metadata.conda_pkg_format_version != VERSION:
        raise source.refuse(f"has the format version {metadata.conda_pkg_format_version}, and not {VERSION}")
