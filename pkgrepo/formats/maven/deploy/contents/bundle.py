"""The files in a bundle: a zip, tar or gzipped tar archive, read without unpacking it to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from pkgrepo.archives.source import Source, check_entry_name
from pkgrepo.archives.streams import Gunzip, PlainStream
from pkgrepo.archives.tar_archive import Tar
from pkgrepo.archives.zip_archive import ZipArchive

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second one is an archive without entries
_GZIP = b"\x1f\x8b"


@frozen
class Entry:
    """
    A file in a bundle; ``size`` in bytes.

    ``pieces`` iterates over its content, once, before the next entry is asked for.
    """

    name: str
    size: int
    pieces: Callable[[], Iterator[bytes]]


def read_entries(source: Source, limit: int) -> Iterator[Entry]:
    """
    Iterate over the files of an archive, whose kind is found by its first bytes. Blocks: call it in a thread.

    Folders are left out.

    :raises Invalid: it is no archive, is damaged, exceeds a limit of ``pkgrepo.archives.source``, unpacks to more than
        ``limit`` bytes, or has a link, a device or an unsafe name
    """
    start = source.read(0, min(4, source.size))
    found = _zip_entries(source) if start in _ZIP else _tar_entries(source, packed=start.startswith(_GZIP))
    left = limit
    for entry in found:
        left -= entry.size
        if left < 0:
            raise source.refuse(f"unpacks to more than {limit} bytes")
        yield entry


def _zip_entries(source: Source) -> Iterator[Entry]:
    archive = ZipArchive(source)
    for name, entry in archive.entries.items():
        if not entry.is_folder:
            yield Entry(name, entry.size, lambda name=name: archive.pieces(name))  # type: ignore[misc]


def _tar_entries(source: Source, *, packed: bool) -> Iterator[Entry]:
    archive = Tar(source, Gunzip(source) if packed else PlainStream(source))
    for member in archive:
        name = member.name
        while name.startswith("./"):  # GNU tar writes it before each name
            name = name[2:]
        if member.is_folder and name.rstrip("/") in ("", "."):
            continue
        check_entry_name(source, name.removesuffix("/"))
        if member.link:
            raise source.refuse(f"has an entry {name!a} that is a link")
        if not member.is_folder:
            yield Entry(name, member.size, archive.pieces)
