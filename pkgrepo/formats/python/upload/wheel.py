"""Checks wheels (PEP 427) without unpacking them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.python.limits import METADATA_SIZE, RECORD_ROWS, RECORD_SIZE
from pkgrepo.formats.python.names import FileName, split_stem

DIST_INFO = ".dist-info"

# PEP 427: RECORD does not list its signatures; it usually lists itself.
_UNRECORDED = ("RECORD", "RECORD.jws", "RECORD.p7s")


def read_wheel(source: Source, filename: FileName) -> bytes:
    """
    The exact bytes of a wheel's METADATA.

    :raises Invalid: it is not a valid wheel of that project and version
    """
    archive = ZipArchive(source)
    folder = _find_dist_info(source, archive.entries, filename)
    metadata = _read_metadata(source, archive, folder)
    record = archive.read(f"{folder}/RECORD", RECORD_SIZE)
    if record is None or f"{folder}/WHEEL" not in archive.entries:
        raise source.refuse(f"must have METADATA, WHEEL and RECORD in {folder}")
    try:
        metadata.decode()
    except UnicodeDecodeError:
        # The core metadata specification requires UTF-8, and the public index refuses others too.
        raise source.refuse("has a METADATA that is not UTF-8") from None
    _check_record(source, archive, folder, record)
    return metadata


def read_metadata(source: Source, filename: FileName) -> bytes:
    """The same of a wheel whose other parts do not matter. :raises Invalid: it has none"""
    archive = ZipArchive(source)
    return _read_metadata(source, archive, _find_dist_info(source, archive.entries, filename))


def read_metadata_alone(source: Source, filename: FileName) -> bytes:
    """
    The same of a wheel of which not all parts need be there.

    :raises PartMissing: one that is needed; :raises Invalid: it has none
    """
    archive = ZipArchive(source, lambda entries: [f"{_find_dist_info(source, entries, filename)}/METADATA"])
    return _read_metadata(source, archive, _find_dist_info(source, archive.entries, filename))


def _read_metadata(source: Source, archive: ZipArchive, folder: str) -> bytes:
    metadata = archive.read(f"{folder}/METADATA", METADATA_SIZE)
    if metadata is None:
        raise source.refuse(f"must have METADATA, WHEEL and RECORD in {folder}")
    return metadata


def _find_dist_info(source: Source, entries: Iterable[str], filename: FileName) -> str:
    tops = (name.partition("/") for name in entries)
    folders = sorted({top for top, slash, _ in tops if slash and top.endswith(DIST_INFO)})
    if len(folders) != 1:
        found = " and ".join(folders[:3]) or "none"
        raise source.refuse(f"must have exactly one {DIST_INFO} folder, and has {found}")
    readings = split_stem(folders[0].removesuffix(DIST_INFO), filename.project_key)
    if not any(filename.is_version(version) for _, version in readings):
        raise source.refuse(f"has a folder {folders[0]}, which is of another project or version")
    return folders[0]


def _check_record(source: Source, archive: ZipArchive, folder: str, record: bytes) -> None:
    if record.count(b",") > 2 * RECORD_ROWS or record.count(b"\n") + record.count(b"\r") > RECORD_ROWS:
        raise source.refuse(f"has a RECORD of more than {RECORD_ROWS} rows")
    try:
        rows = csv.reader(io.StringIO(record.decode(), newline=""), strict=True)
        recorded = {row[0] for row in rows if row}
    except (UnicodeDecodeError, csv.Error) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise source.refuse(f"has a RECORD that cannot be read: {why}") from None
    recorded.update(f"{folder}/{name}" for name in _UNRECORDED)
    missing = [name for name, entry in archive.entries.items() if not entry.is_folder and name not in recorded]
    if missing:
        raise source.refuse(f"has files that its RECORD does not list, the first is {missing[0]!r}")
