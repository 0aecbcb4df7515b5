"""
The release of a distribution that another index had.

It is published as it was served there, also if an upload would be refused today: an egg, an old kind of archive, a
wheel whose METADATA disagrees with its name. What can be read of it is indexed as that of an upload is. An archive that
no program can unpack is refused: nobody has installed it, and its name would be taken.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final, cast

from attrs import frozen

from pkgrepo.archives.source import LIMITS, Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import METADATA, PROVENANCE, PROVENANCE_TYPE, SIGNATURE, FileName, file_path
from pkgrepo.formats.python.upload.inspection import PKG_INFO, inspect, read_metadata
from pkgrepo.formats.python.upload.metadata import check_identity, meta_json, parse_metadata
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged

FILE_TYPE: Final = "application/octet-stream"
MOST_UNPACKED: Final = 4 * 1024**3  # bytes of an archive that are read to see whether it is whole
_ZIPS: Final = (".whl", ".egg", ".zip")
_TARS: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz")
_PACKED: Final[Mapping[bytes, Callable[[IO[bytes]], Any]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lambda file: io.BufferedReader(_Unxz(file)),
}
PIECE: Final = 256 * 1024
XZ_MEMORY: Final = 128 * 1024 * 1024  # bytes; the highest preset needs 65 MiB
HEADERS: Final = 1024 * 1024  # bytes before a member of a tar file: its header, and those that extend it
_DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    RecursionError,  # by extended headers of extended headers
)
ODD: Final = "odd"  # the attribute with the reason why an upload would have been refused


@frozen
class _Read:
    """What could be read of a distribution: METADATA or PKG-INFO, its fields, and why an upload would be refused."""

    metadata: bytes = b""
    meta: Mapping[str, Any] = {}
    odd: str = ""


async def imported_release(
    name: FileName,
    version_text: str,
    requires_python: str | None,
    staged: Staged,
    blob: BlobInfo,
    pools: Pools,
    *,
    companions: Mapping[str, BlobInfo],
) -> Release:
    """
    The release of a staged distribution, of a version with this text; ``requires_python`` is that of its index.

    ``companions`` are staged, too: a signature, and provenance, by the suffix of their paths.
    """
    read = await staged.inspect(pools.cpu, blob, partial(_read, name=name))
    path = file_path(name.project_key, version_text, name.filename)
    attrs: dict[str, Any] = {
        "packagetype": name.kind,
        "python_version": name.python_version,
        "requires_python": requires_python or read.meta.get("requires_python"),
    }
    if read.odd:
        attrs[ODD] = read.odd
    files = [NewFile(path=path, blob=blob, attrs=attrs)]
    if name.kind == "bdist_wheel" and read.metadata:
        companion = await staged.store(read.metadata)
        attrs["core_metadata"] = companion.sha256
        files.append(NewFile(path=path + METADATA, blob=companion, attrs={"role": METADATA}))
    for suffix, companion in companions.items():
        attrs["signature" if suffix == SIGNATURE else "provenance"] = True
        kind = PROVENANCE_TYPE if suffix == PROVENANCE else FILE_TYPE
        files.append(NewFile(path=path + suffix, blob=companion, media_type=kind, attrs={"role": suffix}))
    return Release(
        package_key=name.project_key,
        package_name=str(read.meta.get("name", name.name)),
        version_key=name.version_key,
        version_text=version_text,
        sort=name.version_sort,
        files=tuple(files),
        meta=read.meta,
        describes=False,
    )


def _read(content: int | bytes, name: FileName) -> _Read:
    """Read a distribution, strictly first. Blocks: call it in a thread. :raises Invalid: it cannot be unpacked"""
    _check_readable(content, name.filename)
    try:
        if name.kind == "bdist_egg":
            raise Invalid("eggs are not uploaded any more")
        found = inspect(content, name)
        return _Read(found.metadata_bytes, meta_json(found.metadata))
    except Invalid as error:
        odd = error.message
    try:
        metadata, where = _find_metadata(content, name)
        fields = parse_metadata(metadata, where)
    except Invalid:
        return _Read(odd=odd)
    try:
        check_identity(fields, name, where)
    except Invalid:
        return _Read(metadata, {}, odd)  # what it says is of another release
    return _Read(metadata, meta_json(fields), odd)


def _check_readable(content: int | bytes, filename: str) -> None:
    """
    Check that an archive can be unpacked, as the tools of its time did, which took what is refused today.

    Memory is bounded, whatever the archive says.

    :raises Invalid: it is no archive of its kind, or damaged
    """
    raw = io.BytesIO(content) if isinstance(content, bytes) else os.fdopen(os.dup(content), "rb", buffering=0)
    with _Bounded(raw) as file:
        file.seek(0)
        try:
            if filename.lower().endswith(_ZIPS):
                zipfile.ZipFile(file).close()
            elif filename.lower().endswith(_TARS):
                _walk_tar(file)
        except _DAMAGED as error:
            raise Invalid(f"{filename} cannot be unpacked: {str(error) or 'it ends too early'}") from None


class _Bounded(io.BufferedReader):
    """A file of which only so much is read at once as a zip file's directory may have."""

    def read(self, size: int | None = -1, /) -> bytes:
        """What ``BufferedReader.read`` returns. :raises OSError: that would be too much"""
        most = LIMITS.extended
        found = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(found) > most:
            raise OSError(f"it has a directory of more than {most} bytes")
        return found


class _Unxz(io.RawIOBase):
    """The content of an xz file, with bounded memory, which ``lzma.open`` has not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._unpack = self._new()

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer. Returns the number of bytes. :raises EOFError, LZMAError: the file is damaged"""
        while True:
            packed = b""
            if self._unpack.eof:
                packed = (self._unpack.unused_data or self._file.read(PIECE)).lstrip(b"\0")  # streams are padded
                if not packed:
                    return 0
                self._unpack = self._new()
            elif self._unpack.needs_input:
                packed = self._file.read(PIECE)
                if not packed:
                    raise EOFError("it ends too early")
            data = self._unpack.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)


class _Metered:
    """A stream of which no more than the first ``most`` bytes are read; ``used`` are read already."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self.most = most
        self.used = 0

    def read(self, size: int) -> bytes:
        """Some bytes. :raises ReadError: it would be more"""
        found = self._stream.read(size)
        self.used += len(found)
        if self.used > self.most:
            raise tarfile.ReadError(f"a member has headers of more than {HEADERS} bytes")
        return found


def _walk_tar(file: IO[bytes]) -> None:
    """Read a tar file to its end, of a very large one the beginning. :raises ReadError: it has no members"""
    head, members = file.read(6), 0
    file.seek(0)
    opened = next((opener for magic, opener in _PACKED.items() if head.startswith(magic)), None)
    with file if opened is None else opened(file) as stream:
        metered = _Metered(stream, HEADERS)
        with tarfile.open(fileobj=cast("IO[bytes]", metered), mode="r|") as archive:
            for member in archive:
                members += 1
                metered.most = metered.used + member.size + HEADERS
                if metered.most > MOST_UNPACKED:
                    return
                archive.members.clear()  # type: ignore[attr-defined]  # else it keeps all of them
                archive.pax_headers = {}
        if not members:
            raise tarfile.ReadError("it has no files")
        left = MOST_UNPACKED - metered.used
        with suppress(OSError):  # such as bytes behind the end; but not an end that comes too early
            while left > 0 and (piece := stream.read(PIECE)):
                left -= len(piece)


def _find_metadata(content: int | bytes, name: FileName) -> tuple[bytes, str]:
    """The metadata of a wheel or an egg, and the name of its file. :raises Invalid: there are none"""
    source = Source(content, name.filename)
    if name.kind == "bdist_wheel":
        return read_metadata(source, name), "METADATA"
    if name.kind == "bdist_egg":
        found = ZipArchive(source).read(f"EGG-INFO/{PKG_INFO}", METADATA_SIZE)
        if found is not None:
            return found, PKG_INFO
    raise source.refuse(f"has no {PKG_INFO}")
