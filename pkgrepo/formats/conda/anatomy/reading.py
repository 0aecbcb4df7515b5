"""Reads what a package says of itself from its file."""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.archives.source import Source
from pkgrepo.archives.streams import Bunzip2, Unzstd
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.conda.description import Description, check_file_name, parse_description
from pkgrepo.formats.conda.limits import BZ2_PACKED, BZ2_UNPACKED, INFO_SIZE, METADATA_SIZE
from pkgrepo.formats.conda.names import CONDA, FileName

from .info_folder import ABOUT, EXPORTS, INDEX, read_info

METADATA: Final = "metadata.json"
VERSION: Final = 2  # of the .conda format (CEP 35)


class _Metadata(msgspec.Struct):
    conda_pkg_format_version: int


def read_package(file: int | bytes, name: FileName) -> Description:
    """
    What a package says of itself, given as a file descriptor (which stays open) or as bytes. Blocks: use a thread.

    :raises Invalid: it is damaged, exceeds a limit, or is another package than ``name`` says
    """
    source = Source(file, str(name))
    documents = _read_conda(source, name) if name.ending == CONDA else _read_tar_bz2(source)
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
    return read_info(inner, Unzstd(inner, packed), whole=True)


def _read_tar_bz2(source: Source) -> dict[str, bytes]:
    return read_info(source, Bunzip2(source, most_packed=BZ2_PACKED, most=BZ2_UNPACKED), whole=False)


def _check_version(source: Source, data: bytes) -> None:
    try:
        metadata = msgspec.json.decode(data, type=_Metadata)
    except msgspec.MsgspecError:
        raise source.refuse(f"has a malformed {METADATA}") from None
    if metadata.conda_pkg_format_version != VERSION:
        raise source.refuse(f"has the format version {metadata.conda_pkg_format_version}, and not {VERSION}")
