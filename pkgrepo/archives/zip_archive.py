"""
A reader of zip archives that accepts only archives that all programs read in the same way.

A zip file describes each member twice: in the central directory at its end, and in a local header before the member's
data. Some programs read the one, some the other. An archive is accepted only if both agree, if every byte belongs to a
member or to the directory, and if no member's name leaves the target folder. Section numbers in comments refer to the
zip specification (APPNOTE 6.3).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Final

from attrs import frozen

from pkgrepo.archives.source import check_entry_name, entries_budget, unpacked_budget

from .source import PartSource, Source

_END = struct.Struct("<4s4H2IH")  # 4.3.16
_END64 = struct.Struct("<4sQ2H2I4Q")  # 4.3.14
_LOCATOR64 = struct.Struct("<4sIQI")  # 4.3.15
CENTRAL = struct.Struct("<4s6H3I5H2I")  # 4.3.12
LOCAL = struct.Struct("<4s5H3I2H")  # 4.3.7
_EXTRA = struct.Struct("<2H")  # 4.5.1

_FULL16: Final = 0xFFFF
_FULL32: Final = 0xFFFFFFFF
LONGEST_COMMENT: Final = 0xFFFF

DIRECTORY_SIZE: Final = 64 * 1024 * 1024  # bytes; over 600 for each of the most entries

STORED: Final = 0
DEFLATED: Final = 8

# 4.4.4: encrypted, patched, strongly encrypted, with hidden local headers
_FORBIDDEN_FLAGS: Final = 0x0001 | 0x0020 | 0x0040 | 0x2000
_HAS_DESCRIPTOR: Final = 0x0008
_IS_UTF8: Final = 0x0800

_ZIP64_EXTRA: Final = 0x0001
_UNICODE_PATH_EXTRA: Final = 0x7075  # 4.6.9: a second name, which some readers prefer

HEAD_PACKED: Final = 1024  # bytes; a block of deflate may begin with tables of some hundred (RFC 1951 section 3.2.7)

_REGULAR, _FOLDER, _UNKNOWN = 0o10, 0o04, 0  # the file type of a Unix mode


@frozen
class Entry:
    """One entry of the central directory; sizes and offset in bytes."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a folder: its name ends with a slash."""
        return self.name.endswith("/")


@frozen
class Directory:
    """The central directory: offset, size in bytes, and number of entries."""

    start: int
    size: int
    count: int


@frozen
class Extra:
    """Sizes and offset of an entry, with the values of its zip64 extra field."""

    packed: int
    size: int
    offset: int


class ZipArchive:
    """
    The members of a zip file. The constructor checks the whole archive, except for the content of its members.

    With ``select``, which names some of the entries, only the local headers of these are read and checked, and only
    these members can be read: for an archive of which not all bytes are there.

    :raises Invalid: the archive is damaged or ambiguous, exceeds a limit, or has an unsafe name
    """

    def __init__(self, source: Source, select: Callable[[Mapping[str, Entry]], Collection[str]] | None = None) -> None:
        self._source = source
        directory = find_directory(source)
        self.entries = _read_entries(source, directory)
        _check_sizes(source, self.entries)
        selected = None if select is None else select(self.entries)
        self._data = _check_local_headers(source, directory, self.entries, selected)

    def read(self, name: str, limit: int) -> bytes | None:
        """
        The content of a member, or None if there is no such member.

        :raises Invalid: the content is longer than ``limit`` bytes, or its size or checksum is not the one in the
            directory
        """
        entry = self.entries.get(name)
        if entry is None:
            return None
        if entry.size > limit:
            raise self._source.refuse(f"has a {name} of more than {limit} bytes")
        # The deflated form of ``limit`` bytes is at most slightly longer.
        if entry.packed > limit + limit // 1000 + 1024:
            raise self._source.refuse(f"has a {name} that is longer packed than unpacked")
        data = self._source.read(self._data[name], entry.packed)
        if entry.method == DEFLATED:
            data = self._inflate(entry, data)
        if len(data) != entry.size or zlib.crc32(data) != entry.crc:
            raise self._source.refuse(f"has a {name} that is damaged")
        return data

    def pieces(self, name: str) -> Iterator[bytes]:
        """
        Iterate over the content of a member, of whatever size, in pieces of at most ``limits.piece`` bytes.

        The last piece may be invalid when this raises: the content is verified at its end.

        :raises KeyError: there is no such member
        :raises Invalid: its size or checksum is not the one in the directory
        """
        entry = self.entries[name]
        size = crc = 0
        for piece in self._unpacked(entry):
            size += len(piece)
            if size > entry.size:
                break
            crc = zlib.crc32(piece, crc)
            yield piece
        if size != entry.size or crc != entry.crc:
            raise self._source.refuse(f"has a {name} that is damaged")

    def head(self, name: str, count: int) -> bytes:
        """
        The first ``count`` bytes of a member, or all of a shorter one; nothing is verified.

        :raises KeyError: there is no such member; :raises Invalid: it is damaged
        """
        entry = self.entries[name]
        data = self._source.read(self._data[name], min(entry.packed, count + HEAD_PACKED))
        if entry.method == DEFLATED:
            try:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, count)
            except zlib.error:
                raise self._source.refuse(f"has a {name} that is damaged") from None
        return data[:count]

    def stored(self, name: str) -> Source | None:
        """A member that is not compressed, as a file of its own; None for one that is. Nothing is verified."""
        entry = self.entries[name]
        return PartSource(self._source, self._data[name], entry.packed) if entry.method == STORED else None

    def _unpacked(self, entry: Entry) -> Iterator[bytes]:
        packed, most = self._packed(entry), self._source.limits.piece
        if entry.method == STORED:
            yield from packed
            return
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        for data in packed:
            rest, full = data, True
            while (rest or full) and not inflater.eof:
                try:
                    piece = inflater.decompress(rest, most)
                except zlib.error:
                    raise self._source.refuse(f"has a {entry.name} that is damaged") from None
                rest, full = inflater.unconsumed_tail, len(piece) == most
                if piece:
                    yield piece
            if inflater.eof:
                break
        if not inflater.eof or inflater.unused_data or next(packed, None) is not None:
            raise self._source.refuse(f"has a {entry.name} that does not end where its size says")

    def _packed(self, entry: Entry) -> Iterator[bytes]:
        start, end = self._data[entry.name], self._data[entry.name] + entry.packed
        most = self._source.limits.piece
        for at in range(start, end, most):
            yield self._source.read(at, min(most, end - at))

    def _inflate(self, entry: Entry, data: bytes) -> bytes:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # One byte more than the stated size, to detect a longer content; 0 would mean no limit.
            content = inflater.decompress(data, entry.size + 1)
        except zlib.error:
            raise self._source.refuse(f"has a {entry.name} that is damaged") from None
        if not inflater.eof or inflater.unused_data or inflater.unconsumed_tail:
            raise self._source.refuse(f"has a {entry.name} that does not end where its size says")
        return content


def is_zip(source: Source) -> bool:
    """Whether a file ends as zip archives do, also one that L{ZipArchive} refuses: only the end is read."""
    length = min(source.size, _END.size + LONGEST_COMMENT)
    tail = source.read(source.size - length, length)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return False
    *_, size, _, comment = _END.unpack_from(tail, at)
    before = source.size - length + at
    return bool(at + _END.size + comment <= len(tail) and (size == _FULL32 or size <= before))


def find_directory(source: Source, most: int = 0) -> Directory:
    """
    The central directory of at most ``most`` entries; 0: as many as the size of the file allows.

    :raises Invalid: it is not where the records at the end of the file say, or is too large
    """
    length = min(source.size, _END.size + LONGEST_COMMENT)
    tail = source.read(source.size - length, length)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise source.refuse("is not a zip archive, or is truncated")
    _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise source.refuse("has data after the end of its zip archive")
    if disk or first_disk or here != count:
        raise source.refuse("is one part of a zip archive in several")
    end = source.size - length + at
    found = Directory(start, size, count)
    if end >= _LOCATOR64.size + _END64.size:
        found, end = _apply_zip64(source, found, end)
    most = most or entries_budget(source)
    if found.count > most:
        raise source.refuse(f"has more than {most} entries")
    if found.size > DIRECTORY_SIZE:
        raise source.refuse(f"has a central directory of more than {DIRECTORY_SIZE} bytes")
    if found.start + found.size != end:
        raise source.refuse("has a central directory that is not where its end record says")
    return found


def _apply_zip64(source: Source, short: Directory, end: int) -> tuple[Directory, int]:
    """The directory and the offset of its end records, according to the zip64 records if there are any."""
    signature, disk, at, disks = _LOCATOR64.unpack(source.read(end - _LOCATOR64.size, _LOCATOR64.size))
    if signature != b"PK\x06\x07":
        return short, end
    if disk or disks != 1 or at + _END64.size != end - _LOCATOR64.size:
        raise source.refuse("has a zip64 end record that is not where its locator says")
    signature, length, _, _, disk, first_disk, here, count, size, start = _END64.unpack(source.read(at, _END64.size))
    if signature != b"PK\x06\x06" or length != _END64.size - 12 or disk or first_disk or here != count:
        raise source.refuse("has a malformed zip64 end record")
    # Some programs read the short record, some the zip64 record: both must agree on numbers that fit the short one.
    pairs = ((short.count, count, _FULL16), (short.size, size, _FULL32), (short.start, start, _FULL32))
    if any(low not in (high, full) for low, high, full in pairs):
        raise source.refuse("has two end records that contradict each other")
    return Directory(start, size, count), at


def _read_entries(source: Source, directory: Directory) -> dict[str, Entry]:
    data = source.read(directory.start, directory.size)
    entries: dict[str, Entry] = {}
    at = 0
    for _ in range(directory.count):
        if len(data) - at < CENTRAL.size:
            raise source.refuse("has a central directory that ends too early")
        fields = CENTRAL.unpack_from(data, at)
        signature, _, _, flags, method, _, _, crc, packed, size, *lengths = fields[:13]
        disk, _, attributes, offset = fields[13:]
        name_end = at + CENTRAL.size + lengths[0]
        extra_end = name_end + lengths[1]
        if signature != b"PK\x01\x02" or extra_end + lengths[2] > len(data):
            raise source.refuse("has a malformed central directory")
        raw_name = data[at + CENTRAL.size : name_end]
        name = decode_name(source, raw_name, flags)
        extra = read_extra(source, raw_name, data[name_end:extra_end], Extra(packed, size, offset))
        at = extra_end + lengths[2]
        entry = Entry(name, raw_name, flags, method, crc, extra.packed, extra.size, extra.offset)
        check_entry(source, entry, disk)
        # 4.4.15: the upper half is a Unix mode. Installers use it even if another system wrote the archive.
        _check_type(source, entry, attributes >> 28)
        if name in entries:
            raise source.refuse(f"has two entries of the name {name!r}")
        entries[name] = entry
    if at != len(data):
        raise source.refuse("has a central directory that goes on after its last entry")
    return entries


def decode_name(source: Source, raw_name: bytes, flags: int) -> str:
    """The name of an entry. :raises Invalid: it is too long, is no UTF-8 or leaves the target folder"""
    if len(raw_name) > source.limits.longest_name:
        raise source.refuse(f"has an entry with a name of more than {source.limits.longest_name} bytes")
    try:
        name = raw_name.decode("utf-8" if flags & _IS_UTF8 else "cp437")
    except UnicodeDecodeError:
        raise source.refuse("has an entry whose name is not UTF-8") from None
    check_entry_name(source, name.removesuffix("/"))
    return name


def read_extra(source: Source, raw_name: bytes, data: bytes, short: Extra) -> Extra:
    """Sizes and offset; values that do not fit the header are read from the zip64 extra field (4.5.3)."""
    packed, size, offset = short.packed, short.size, short.offset
    at, seen = 0, False
    while len(data) - at >= _EXTRA.size:
        kind, length = _EXTRA.unpack_from(data, at)
        at += _EXTRA.size
        field = data[at : at + length]
        at += length
        if at > len(data):
            raise source.refuse("has an entry with a malformed extra field")
        if kind == _UNICODE_PATH_EXTRA and field[5:] != raw_name:
            raise source.refuse("has an entry with two different names")
        if kind != _ZIP64_EXTRA:
            continue
        if seen:
            raise source.refuse("has an entry with two zip64 fields")
        seen = True
        values = iter(struct.unpack_from(f"<{length // 8}Q", field))
        try:
            size = next(values) if size == _FULL32 else size
            packed = next(values) if packed == _FULL32 else packed
            offset = next(values) if offset == _FULL32 else offset
        except StopIteration:
            raise source.refuse("has an entry with a zip64 field that is too short") from None
    return Extra(packed, size, offset)


def check_entry(source: Source, entry: Entry, disk: int) -> None:
    """Check how an entry is stored. :raises Invalid: in a way that not all programs read alike"""
    if disk:
        raise source.refuse("is one part of a zip archive in several")
    if entry.flags & _FORBIDDEN_FLAGS:
        raise source.refuse(f"has an entry {entry.name!r} that is encrypted")
    if entry.method not in (STORED, DEFLATED):
        raise source.refuse(f"has an entry {entry.name!r} that is neither stored nor deflated")
    if entry.method == STORED and entry.packed != entry.size:
        raise source.refuse(f"has a stored entry {entry.name!r} with two sizes")
    if entry.is_folder and entry.size:
        raise source.refuse(f"has a folder {entry.name!r} with content")


def _check_type(source: Source, entry: Entry, kind: int) -> None:
    if kind not in (_FOLDER, _UNKNOWN) if entry.is_folder else kind not in (_REGULAR, _UNKNOWN):
        raise source.refuse(f"has an entry {entry.name!r} that is a link or a device")


def _check_sizes(source: Source, entries: dict[str, Entry]) -> None:
    budget = unpacked_budget(source)
    if sum(entry.size for entry in entries.values()) > budget:
        raise source.refuse(f"would unpack to more than {budget} bytes, far more than it is packed")


def _check_local_headers(
    source: Source, directory: Directory, entries: dict[str, Entry], selected: Collection[str] | None
) -> dict[str, int]:
    """
    Offset of the data of each member, or of those that are ``selected``.

    Checks that headers and data fill the file up to the directory without gaps.
    """
    starts: dict[str, int] = {}
    ordered = sorted(entries.values(), key=lambda entry: entry.offset)
    bounds = [entry.offset for entry in ordered] + [directory.start]
    if bounds[0] != 0:
        raise source.refuse("has data before its first entry")
    for entry, (at, end) in zip(ordered, pairwise(bounds), strict=True):
        if selected is not None and entry.name not in selected:
            continue
        head = source.read(at, LOCAL.size)
        signature, _, flags, method, _, _, crc, packed, size, name_length, extra_length = LOCAL.unpack(head)
        names = source.read(at + LOCAL.size, name_length + extra_length)
        raw_name, extra = names[:name_length], names[name_length:]
        same = (flags ^ entry.flags) & (_FORBIDDEN_FLAGS | _HAS_DESCRIPTOR | _IS_UTF8) == 0
        if signature != b"PK\x03\x04" or not same or method != entry.method or raw_name != entry.raw_name:
            raise source.refuse(f"has an entry {entry.name!r} whose local header says otherwise than the directory")
        wide = read_extra(source, raw_name, extra, Extra(packed, size, 0))
        pairs = ((crc, entry.crc), (wide.packed, entry.packed), (wide.size, entry.size))
        # These values may be 0 here if a data descriptor after the data has them (4.4.4).
        if any(said != known and (said or not flags & _HAS_DESCRIPTOR) for said, known in pairs):
            raise source.refuse(f"has an entry {entry.name!r} whose local header says otherwise than the directory")
        start = at + LOCAL.size + len(names)
        rest = end - start - entry.packed
        if rest < 0:
            raise source.refuse("has entries that overlap")
        if rest or flags & _HAS_DESCRIPTOR:
            _check_descriptor(source, entry, source.read(start + entry.packed, rest) if rest <= 24 else b"")
        starts[entry.name] = start
    return starts


def _check_descriptor(source: Source, entry: Entry, data: bytes) -> None:
    """Check that nothing but a data descriptor in one of the forms of 4.3.9 follows the member's data."""
    if entry.flags & _HAS_DESCRIPTOR:
        for layout in ("<III", "<IQQ"):
            if layout == "<III" and max(entry.packed, entry.size) > _FULL32:
                continue
            plain = struct.pack(layout, entry.crc, entry.packed, entry.size)
            if data in (plain, b"PK\x07\x08" + plain):
                return
    raise source.refuse(f"has data after its entry {entry.name!r} that belongs to none")
