"""
A streaming reader of tar archives (POSIX pax, GNU tar, and older formats).

It accepts files, folders and links, since package tools write nothing else, and refuses members of other types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from pkgrepo.archives.source import HEADERS_OF_ENTRY, RECORDS_OF_ENTRY, Source, entries_budget

BLOCK: Final = 512  # bytes
EXTENDED_SIZE: Final = 64 * 1024  # bytes of one extended header; usually a few hundred

_FILES: Final = (b"0", b"\x00", b"7")
_HARD_LINK, _SYMBOLIC_LINK, _FOLDER = b"1", b"2", b"5"
_PAX, _PAX_GLOBAL = b"x", b"g"
_GNU_NAME, _GNU_LINK = b"L", b"K"
_REFUSED: Final = {
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
    b"S": "a sparse file",
    b"M": "the rest of a file from another archive",
}


class Stream(Protocol):
    """The bytes of a tar archive in order: of a L{Gunzip}, or of a file that is not compressed (L{PlainStream})."""

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes; fewer at the end."""

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes. Returns the number of bytes skipped, which is smaller at the end."""

    def only_zeros_follow(self) -> bool:
        """Whether all remaining bytes are zero."""


@frozen
class Member:
    """
    One entry of an archive, with its name as in the archive. ``size`` is the length of the content in bytes.

    ``link`` is the target of a link, and empty for other entries. The target of a hard link is a path in the archive,
    the target of a symbolic link a path relative to the folder of the link. ``mode`` are the permissions of a file in a
    layer of an image.
    """

    name: str
    size: int
    is_folder: bool = False
    is_symbolic: bool = False
    link: str = ""
    mode: int = 0

    @property
    def is_file(self) -> bool:
        """Whether the entry is a file, and not a folder or link."""
        return not self.is_folder and not self.link


@frozen
class _Override:
    """Values of extended headers, which override the header of the next entry."""

    name: str | None = None
    link: str | None = None
    size: int | None = None


def extension_size(header: bytes) -> int | None:
    """The bytes that follow a header if it extends the next one; None if it is that of an entry. It is not checked."""
    if header[156:157] not in (_PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK):
        return None
    digits = header[124:136].strip(b" \x00")
    return int(digits, 8) if digits and not digits.strip(b"01234567") else 0


class Tar:
    """Iterates over the members of a tar archive. ``read`` and ``pieces`` return the content of the current member."""

    def __init__(self, source: Source, stream: Stream) -> None:
        self._source = source
        self._limits = source.limits
        self._stream = stream
        self._left = 0  # unread bytes of the current member's content
        self._padding = 0
        self._extended = 0  # bytes of extended headers so far
        self._records = 0
        self._names_size = 0
        self._most_entries = entries_budget(source)

    def read(self, limit: int) -> bytes:
        """
        The content of the current member.

        :raises Invalid: the content is longer than ``limit`` bytes
        """
        if self._left > limit:
            raise self._source.refuse(f"has an entry of more than {limit} bytes where less is allowed")
        return self._read_content(self._left)

    def head(self, count: int) -> bytes:
        """
        The next ``count`` bytes of the content of the current member; fewer at its end.

        :raises Invalid: the archive is truncated
        """
        return self._read_content(min(count, self._left))

    def pieces(self) -> Iterator[bytes]:
        """
        Iterate over the content of the current member, of whatever size, in pieces of at most ``limits.piece`` bytes.

        :raises Invalid: the archive is truncated
        """
        while self._left:
            yield self._read_content(min(self._limits.piece, self._left))

    def __iter__(self) -> Iterator[Member]:
        """
        Iterate over the members in order.

        :raises Invalid: the archive is damaged, exceeds a limit (see L{ArchiveLimits}), or has an entry that is not a
            file, folder or link
        """
        override = _Override()
        entries = 0
        for _ in range(HEADERS_OF_ENTRY * self._most_entries):
            self._skip_rest_of_member()
            header = self._stream.read(BLOCK)
            if len(header) != BLOCK or not any(header):
                self._check_end(header)
                return
            kind = header[156:157]
            self._check_checksum(header)
            self._start_content(self._number(header[124:136], "size"))
            if kind in (_PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK):
                override = self._extend(override, kind)
                continue
            if override.size is not None:
                self._start_content(override.size)
            entries += 1
            if entries > self._most_entries:
                raise self._source.refuse(f"has more than {self._most_entries} entries")
            yield self._count_name(self._member(header, kind, override))
            override = _Override()
        raise self._source.refuse(f"has more than {HEADERS_OF_ENTRY * self._most_entries} headers")

    def _count_name(self, member: Member) -> Member:
        self._names_size += len(member.name) + len(member.link)
        if self._names_size > self._limits.names:
            raise self._source.refuse(f"has names of more than {self._limits.names} bytes together")
        return member

    def _start_content(self, size: int) -> None:
        self._left = size
        self._padding = -size % BLOCK

    def _skip_rest_of_member(self) -> None:
        wanted = self._left + self._padding
        if self._stream.skip(wanted) != wanted:
            raise self._source.refuse("is truncated")
        self._left = self._padding = 0

    def _check_end(self, header: bytes) -> None:
        if any(header):
            raise self._source.refuse("is truncated")
        # Some programs stop at the first empty block, others read on, so data after it would have two meanings.
        if not self._stream.only_zeros_follow():
            raise self._source.refuse("has data after the end of its tar archive")

    def _read_content(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise self._source.refuse("is truncated")
        self._left -= count
        return data

    def _check_checksum(self, header: bytes) -> None:
        digits = header[148:156].strip(b" \x00")  # which no other file has there
        given = int(digits, 8) if digits and not digits.strip(b"01234567") else -1
        if given != sum(header) - sum(header[148:156]) + 8 * 0x20:
            raise self._source.refuse("is not a tar archive, or is damaged")

    def _number(self, field: bytes, what: str) -> int:
        """The number in a header field: octal digits, or big-endian binary after a byte 0x80 (GNU)."""
        if field[0] == 0x80:
            return int.from_bytes(field[1:], "big")
        digits = field.strip(b" \x00")
        if digits.strip(b"01234567"):
            raise self._source.refuse(f"has an entry with a malformed {what}")
        return int(digits or b"0", 8)

    def _member(self, header: bytes, kind: bytes, override: _Override) -> Member:
        name = override.name
        if name is None:
            prefix = self._text(header[345:500])
            if prefix and header[257:263] != b"ustar\x00":
                raise self._source.refuse("has an entry whose header some readers take for a longer name")
            name = self._text(header[:100])
            name = f"{prefix}/{name}" if prefix else name
        link = self._text(header[157:257]) if override.link is None else override.link
        # Formats before POSIX have no type for folders.
        is_folder = kind == _FOLDER or (kind in _FILES and name.endswith("/"))
        is_link = kind in (_HARD_LINK, _SYMBOLIC_LINK) and link != ""
        if (is_folder or is_link) and self._left:
            # Some programs skip such content, others read it as the next header.
            raise self._source.refuse(f"has a folder or link {name!a} with content")
        if is_link:
            return Member(name, 0, is_symbolic=kind == _SYMBOLIC_LINK, link=link)
        if is_folder or kind in _FILES:
            return Member(name, self._left, is_folder=is_folder)
        raise self._source.refuse(f"has an entry {name!a} that is {_REFUSED.get(kind, 'of an unknown type')}")

    def _extend(self, override: _Override, kind: bytes) -> _Override:
        data = self.read(EXTENDED_SIZE)
        self._extended += len(data)
        if self._extended > self._limits.extended:
            raise self._source.refuse(f"has extended headers of more than {self._limits.extended} bytes together")
        if kind == _GNU_NAME:
            return self._set_once(override, name=self._text(data))
        if kind == _GNU_LINK:
            return self._set_once(override, link=self._text(data))
        for key, value in self._pax_records(data):
            if kind == _PAX_GLOBAL and key in (b"path", b"linkpath", b"size"):
                raise self._source.refuse(f"has a global header that says the {key.decode()} of every entry")
            override = self._apply(override, key, value)
        return override

    def _apply(self, override: _Override, key: bytes, value: bytes) -> _Override:
        """The override with the value of one pax record added; most keys are ignored."""
        if key.startswith(b"GNU.sparse"):
            raise self._source.refuse("has an entry that is a sparse file")
        if key in (b"path", b"linkpath") and not value:
            # Some programs take the one in the next header then.
            raise self._source.refuse(f"has an extended header with an empty {key.decode()}")
        if key == b"path":
            return self._set_once(override, name=self._text(value))
        if key == b"linkpath":
            return self._set_once(override, link=self._text(value))
        if key == b"size":
            if not value.isdigit() or len(value) > 20:
                raise self._source.refuse("has an entry with a malformed size")
            return self._set_once(override, size=int(value))
        return override

    def _set_once(self, override: _Override, **change: Any) -> _Override:
        if any(getattr(override, field) is not None for field in change):
            raise self._source.refuse("has an entry whose extended headers say the same thing twice")
        return evolve(override, **change)

    def _pax_records(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of each record. A record: its length in decimal, a blank, key=value, a line feed."""
        at = 0
        while at < len(data):
            digits, blank, _ = data[at : at + 8].partition(b" ")
            length = int(digits) if blank and digits.isdigit() else 0
            record = data[at : at + length]
            key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
            if length == 0 or len(record) != length or not equals or not record.endswith(b"\n"):
                raise self._source.refuse("has a malformed pax header")
            self._records += 1
            if self._records > RECORDS_OF_ENTRY * self._most_entries:
                raise self._source.refuse(f"has more than {RECORDS_OF_ENTRY * self._most_entries} pax records")
            yield key, value
            at += length

    def _text(self, field: bytes) -> str:
        text = field.partition(b"\x00")[0]
        if len(text) > self._limits.longest_name:
            raise self._source.refuse(f"has an entry with a name of more than {self._limits.longest_name} bytes")
        return text.decode("utf-8", "surrogateescape")
