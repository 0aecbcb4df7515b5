"""
Members of a large zip archive, one after the other, in memory for one of them.

It is for archives of which only the content counts, such as exports of databases: L{ZipArchive} keeps a directory of
all entries, and also refuses archives that other programs read otherwise.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from typing import Final

from .source import Source
from .zip_archive import (
    CENTRAL,
    DEFLATED,
    LOCAL,
    Directory,
    Entry,
    Extra,
    check_entry,
    decode_name,
    find_directory,
    read_extra,
)

MOST_ENTRIES: Final = 1_000_000
UNPACKED_SIZE: Final = 16 * 1024**3  # bytes of all members together that are read


def iter_members(
    source: Source,
    ending: str,
    limit: int,
    *,
    first: str = "",
    entries: int = MOST_ENTRIES,
    unpacked: int = UNPACKED_SIZE,
) -> Iterator[tuple[str, bytes | None]]:
    """
    Iterate over the members whose name has an ``ending``: name and content; None for one of more than ``limit`` bytes.

    Those in whose path the last name begins with ``first`` come before others, the last of the archive first. At most
    ``unpacked`` bytes are read of an archive of at most ``entries``.

    :raises Invalid: the archive is damaged, or exceeds a limit
    """
    directory = find_directory(source, entries)
    left = unpacked
    for entry in _in_order(source, directory, ending, first):
        if max(entry.size, entry.packed) > limit:
            yield entry.name, None
            continue
        left -= entry.size
        if left < 0:
            raise source.refuse(f"would unpack to more than {unpacked} bytes")
        yield entry.name, _read(source, entry)


def _in_order(source: Source, directory: Directory, ending: str, first: str) -> Iterator[Entry]:
    """The entries in the order in which they are read."""
    early, at = array("Q"), directory.start
    for _ in range(directory.count if first else 0):
        entry, following = _read_entry(source, directory, at)
        if _is_early(entry, ending, first):
            early.append(at)
        at = following
    for at in reversed(early):
        yield _read_entry(source, directory, at)[0]
    at = directory.start
    for _ in range(directory.count):
        entry, at = _read_entry(source, directory, at)
        if entry.name.endswith(ending) and not (first and _is_early(entry, ending, first)):
            yield entry


def _is_early(entry: Entry, ending: str, first: str) -> bool:
    return entry.name.endswith(ending) and entry.name.rpartition("/")[2].startswith(first)


def _read_entry(source: Source, directory: Directory, at: int) -> tuple[Entry, int]:
    """The entry at an offset of the directory, and the offset of the next one."""
    end = directory.start + directory.size
    if end - at < CENTRAL.size:
        raise source.refuse("has a central directory that ends too early")
    fields = CENTRAL.unpack(source.read(at, CENTRAL.size))
    signature, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length = fields[:13]
    disk, _, _, offset = fields[13:]
    following = at + CENTRAL.size + name_length + extra_length + comment_length
    if signature != b"PK\x01\x02" or following > end:
        raise source.refuse("has a malformed central directory")
    names = source.read(at + CENTRAL.size, name_length + extra_length)
    raw_name = names[:name_length]
    extra = read_extra(source, raw_name, names[name_length:], Extra(packed, size, offset))
    name = decode_name(source, raw_name, flags)
    entry = Entry(name, raw_name, flags, method, crc, extra.packed, extra.size, extra.offset)
    check_entry(source, entry, disk)
    return entry, following


def _read(source: Source, entry: Entry) -> bytes:
    head = LOCAL.unpack(source.read(entry.offset, LOCAL.size))
    if head[0] != b"PK\x03\x04":
        raise source.refuse(f"has no header of its entry {entry.name!r}")
    data = source.read(entry.offset + LOCAL.size + head[9] + head[10], entry.packed)
    if entry.method == DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = inflater.decompress(data, entry.size + 1)  # 0 would mean no limit
        except zlib.error:
            raise source.refuse(f"has a {entry.name} that is damaged") from None
    if len(data) != entry.size or zlib.crc32(data) != entry.crc:
        raise source.refuse(f"has a {entry.name} that is damaged")
    return data
