"""
Checks uploaded wheels (PEP 427) and source distributions (PEP 517, PEP 625, PEP 721), and reads their metadata.

Nothing is unpacked to disk and no code of the distribution runs. CPU time and memory are bounded by ``limits``,
whatever sizes the archive declares.
"""

from __future__ import annotations

import csv
import io
import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from pkgrepo.archives.source import LIMITS, ArchiveLimits, Source, check_entry_name, is_portable
from pkgrepo.archives.streams import Gunzip
from pkgrepo.archives.tar_archive import Member, Tar
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.python.limits import METADATA_SIZE, RECORD_ROWS, RECORD_SIZE
from pkgrepo.formats.python.names import FileName, Kind, split_stem
from pkgrepo.formats.python.upload.metadata import CoreMetadata, check_identity, parse_metadata

DIST_INFO = ".dist-info"
PKG_INFO = "PKG-INFO"
_PKG_INFO = re.compile(r"(?:\./)*[^/]+/PKG-INFO")

# PEP 427: RECORD does not list its signatures; it usually lists itself.
_UNRECORDED = ("RECORD", "RECORD.jws", "RECORD.p7s")


@frozen
class Inspection:
    """A distribution's metadata: the exact bytes of METADATA or PKG-INFO, and the parsed fields."""

    kind: Kind
    metadata_bytes: bytes
    metadata: CoreMetadata


def inspect(file: int | bytes | Path, filename: FileName, limits: ArchiveLimits = LIMITS) -> Inspection:
    """
    Inspect a distribution, given as a descriptor (which stays open), bytes or a path. Blocks: call it in a thread.

    :raises Invalid: it is damaged, unsafe to unpack, or of another project or version than its name says
    """
    if isinstance(file, int | bytes):
        return _inspect(Source(file, filename.filename, limits), filename)
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _inspect(Source(descriptor, filename.filename, limits), filename)
    finally:
        os.close(descriptor)


def _inspect(source: Source, filename: FileName) -> Inspection:
    is_wheel = filename.kind == "bdist_wheel"
    data = read_wheel(source, filename) if is_wheel else read_sdist(source, filename)
    where = "METADATA" if is_wheel else PKG_INFO
    metadata = parse_metadata(data, where)
    check_identity(metadata, filename, where)
    return Inspection(kind=filename.kind, metadata_bytes=data, metadata=metadata)


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
    """The METADATA of a wheel whose other parts do not matter. :raises Invalid: it has none"""
    archive = ZipArchive(source)
    return _read_metadata(source, archive, _find_dist_info(source, archive.entries, filename))


def read_metadata_alone(source: Source, filename: FileName) -> bytes:
    """
    The METADATA of a wheel of which some parts may be missing.

    :raises PartMissing: a needed part is missing; :raises Invalid: it has no METADATA
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
        recorded = {name for name, *_ in filter(None, rows)}
    except (UnicodeDecodeError, csv.Error) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise source.refuse(f"has a RECORD that cannot be read: {why}") from None
    recorded.update(f"{folder}/{name}" for name in _UNRECORDED)
    missing = [name for name, entry in archive.entries.items() if not entry.is_folder and name not in recorded]
    if missing:
        raise source.refuse(f"has files that its RECORD does not list, the first is {missing[0]!r}")


def read_sdist(source: Source, filename: FileName) -> bytes:
    """
    The exact bytes of a source distribution's PKG-INFO.

    Every entry is checked, so that unpacking the archive cannot write outside its folder.

    :raises Invalid: it is not a valid source distribution of that project and version
    """
    tree = _Tree(source, filename)
    found = _read_zip(source, tree) if filename.filename.endswith(".zip") else _read_tar(source, tree)
    if found is None:
        raise source.refuse(f"must have {tree.top or filename.stem}/{PKG_INFO}")
    return found


def find_pkg_info(source: Source) -> bytes | None:
    """
    PKG-INFO in the folder of a source distribution of whatever shape; None if it has none.

    :raises Invalid: the archive is damaged, or is of a kind that is not read here
    """
    if source.name.endswith(".zip"):
        archive = ZipArchive(source)
        named = next((each for each in archive.entries if _PKG_INFO.fullmatch(each)), None)
        return None if named is None else archive.read(named, METADATA_SIZE)
    if not source.name.endswith((".tar.gz", ".tgz")):
        raise source.refuse("is of a kind whose metadata are not read")
    tar = Tar(source, Gunzip(source))
    for member in tar:
        if member.is_file and _PKG_INFO.fullmatch(member.name):
            return tar.read(METADATA_SIZE)
    return None


def _read_zip(source: Source, tree: _Tree) -> bytes | None:
    archive = ZipArchive(source)
    for name, entry in archive.entries.items():
        tree.add(Member(name, entry.size, is_folder=entry.is_folder))
    return archive.read(f"{tree.top}/{PKG_INFO}", METADATA_SIZE)


def _read_tar(source: Source, tree: _Tree) -> bytes | None:
    found = None
    tar = Tar(source, Gunzip(source))
    for member in tar:
        name = tree.add(member)
        if name is not None and name == f"{tree.top}/{PKG_INFO}":
            if not member.is_file:
                raise source.refuse(f"has a {PKG_INFO} that is no plain file")
            found = tar.read(METADATA_SIZE)
    return found


class _Tree:
    """The tree that unpacking would create: one folder with the name of the file, and its entries."""

    def __init__(self, source: Source, filename: FileName) -> None:
        self.top = ""
        self._source = source
        self._filename = filename
        self._names: set[str] = set()
        self._symbolic: set[str] = set()
        self._folders = 0  # path components checked so far, limited

    def add(self, member: Member) -> str | None:
        """
        Add a member; returns its path, or None for the archive's root folder.

        :raises Invalid: its path or link leads out of the folder, or the path was added before
        """
        name = self._plain(member.name)
        if not name:
            if member.is_folder:
                return None
            raise self._source.refuse("has an entry without a name")
        self._check_top(name, member)
        if not member.is_folder:
            if name in self._names:
                raise self._source.refuse(f"has two entries of the name {name!a}")
            self._names.add(name)
        if self._symbolic:
            self._check_parents(name)
        if member.link:
            self._check_link(name, member)
            if member.is_symbolic:
                self._symbolic.add(name)
        return name

    def _plain(self, name: str) -> str:
        """A member's path without leading ``./`` and trailing ``/``."""
        while name.startswith("./"):
            name = name[2:]
        name = name.rstrip("/") if name != "." else ""
        if name:
            check_entry_name(self._source, name)
        return name

    def _check_top(self, name: str, member: Member) -> None:
        top, slash, _ = name.partition("/")
        if (self.top and top != self.top) or not (slash or member.is_folder):
            raise self._source.refuse(f"must have everything in one folder {self.top or self._filename.stem!r}")
        if not self.top:
            readings = split_stem(top, self._filename.project_key)
            if not any(self._filename.is_version(version) for _, version in readings):
                raise self._source.refuse(f"must have everything in one folder {self._filename.stem!r}, not {top!r}")
            self.top = top

    def _check_parents(self, name: str) -> None:
        self._count_folders(name)
        at = name.find("/")
        while at >= 0:
            if name[:at] in self._symbolic:
                raise self._source.refuse(f"has an entry {name!a} whose path goes through a link")
            at = name.find("/", at + 1)

    def _count_folders(self, path: str) -> None:
        self._folders += path.count("/")
        most = self._source.limits.folders
        if self._folders > most:
            raise self._source.refuse(f"has links, and more than {most} folders on the way to its entries")

    def _check_link(self, name: str, member: Member) -> None:
        target = member.link
        self._count_folders(target)
        if not member.is_symbolic:
            # A hard link to a symbolic link could resolve to another place.
            original = self._plain(target)
            inside = original in self._names and original not in self._symbolic
        else:
            # ".." after a name could be resolved after following another link, and lead anywhere.
            parts = [part for part in target.split("/") if part not in ("", ".")]
            climbs = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
            reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            inside = (
                not target.startswith("/")
                and is_portable(target)
                and ".." not in parts[climbs:]
                and (reached == self.top or reached.startswith(f"{self.top}/"))
            )
        if not inside:
            raise self._source.refuse(f"has a link {name!a} that leads out of its folder, to {target!a}")
