"""
An uploaded file that several threads can read at the same time, and the limits of what it may contain.

Each limit keeps the CPU time for checking 1 MB of upload below one second. The limits of entries and of
decompressed bytes increase with the size of the file, since large real archives need more.

=====================  ==========================================  =================================================
counted                limit                                       cost per item
=====================  ==========================================  =================================================
entries                20,000, or one per 16 bytes of the file;    10 us
                       at most 100,000
tar headers            2 per entry, with the extended headers      6 us
pax records            10 per entry                                0.6 us
bytes of extended      16 MiB                                      copied once
headers
bytes of names         16 MiB                                      12 ns
folders in paths       1,000,000, if the archive has links         0.2 us
gzip streams           1,000                                       10 us
decompressed bytes     64 MiB, or 50 per byte of the file;         2 ns
                       at most 10 GiB
=====================  ==========================================  =================================================
"""

from __future__ import annotations

import os
import re
from typing import Final

from attrs import define, frozen

from pkgrepo.errors import Invalid, PkgrepoError

HEADERS_OF_ENTRY: Final = 2  # some tools write an extended header before each entry
RECORDS_OF_ENTRY: Final = 10  # pax records; bsdtar writes up to eight

_UNWANTED = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE = re.compile(r"[A-Za-z]:")
# A component that is empty, "." or "..": the path is absolute, leaves the folder, or is another form of a simpler path.
_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")


@frozen
class ArchiveLimits:
    """The limits of the table above: numbers of items, and sizes in bytes."""

    entries: int = 100_000
    free_entries: int = 20_000  # a file of any size may have as many
    entry_size: int = 16  # of the file per further entry; the densest packages of icons have 44
    longest_name: int = 4096  # PATH_MAX of Linux
    names: int = 16 * 1024 * 1024  # of all names together; about 160 for each of the most entries
    extended: int = 16 * 1024 * 1024  # of all extended headers together
    folders: int = 1_000_000  # path components that are compared with the links of an archive
    piece: int = 256 * 1024  # that are read at once, and at most decompressed at once
    free_size: int = 64 * 1024 * 1024  # up to this decompressed size any compression ratio is allowed
    ratio: int = 50  # compression ratio above ``free_size``; real packages stay far below
    unpacked: int = 10 * 1024**3  # no file may decompress to more


LIMITS: Final = ArchiveLimits()


class Source:
    """
    The content of an uploaded file: a file descriptor, which the caller closes, or bytes in memory.

    Reads do not change the file position of the descriptor. ``name`` is the file's name in error messages.
    """

    def __init__(self, content: int | bytes, name: str, limits: ArchiveLimits = LIMITS) -> None:
        self.name = name
        self.limits = limits
        self.size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
        self._content = content

    def read(self, start: int, count: int) -> bytes:
        """
        Exactly ``count`` bytes from ``start``.

        :raises Invalid: the file ends before
        """
        if isinstance(self._content, bytes):
            if not 0 <= start <= start + count <= self.size:
                raise self.refuse("is truncated")
            return self._content[start : start + count]
        parts: list[bytes] = []
        missing = count
        while missing > 0:
            part = os.pread(self._content, missing, start)
            if not part:
                raise self.refuse("is truncated")
            parts.append(part)
            start += len(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def refuse(self, why: str) -> Invalid:
        """The error that refuses this file. Its message is the name of the file followed by ``why``."""
        return Invalid(f"{self.name} {why}", "content")


class PartSource(Source):
    """A file that is inside another one as it is, from an offset on; ``outer`` is read only as far as it is asked."""

    def __init__(self, outer: Source, start: int, size: int) -> None:
        super().__init__(b"", outer.name, outer.limits)
        self.size = size
        self._outer, self._start = outer, start

    def read(self, start: int, count: int) -> bytes:
        """See the base class."""
        if not 0 <= start <= start + count <= self.size:
            raise self.refuse("is truncated")
        return self._outer.read(self._start + start, count)


@define
class PartMissing(PkgrepoError):  # noqa: N818 - named for what is the case
    """The bytes from ``start`` to ``end`` (exclusive) of a file are not there."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"the bytes from {self.start} to {self.end} are not there"


class PartialSource(Source):
    """A file of ``size`` bytes, of which only some parts are there."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(b"", name)
        self.size = size
        self._parts: dict[int, bytes] = {}

    def add(self, start: int, data: bytes) -> None:
        """Add the bytes from ``start`` on."""
        self._parts[start] = data

    def read(self, start: int, count: int) -> bytes:
        """
        Exactly ``count`` bytes from ``start``.

        :raises PartMissing: the first part that is needed and not there
        """
        end = start + count
        if not 0 <= start <= end <= self.size:
            raise self.refuse("is truncated")
        found = bytearray()
        while len(found) < count:
            at = start + len(found)
            holding = ((first, data) for first, data in self._parts.items() if first <= at < first + len(data))
            first, data = next(holding, (at, b""))
            if not data:
                raise PartMissing(at, min((each for each in self._parts if at < each < end), default=end))
            found += data[at - first : end - first]
        return bytes(found)


def entries_budget(source: Source) -> int:
    """The maximum number of entries of an archive file."""
    limits = source.limits
    return min(limits.entries, max(limits.free_entries, source.size // limits.entry_size))


def unpacked_budget(source: Source) -> int:
    """The maximum decompressed size of an archive file, in bytes."""
    limits = source.limits
    return min(limits.unpacked, max(limits.free_size, source.size * limits.ratio))


def is_portable(text: str) -> bool:
    """Whether a path has no control characters, no backslash and no drive letter."""
    return not _UNWANTED.search(text) and not _DRIVE.match(text)


def check_entry_name(source: Source, name: str) -> None:
    """
    Check that a name is a plain relative path. The caller removes a trailing slash first.

    :raises Invalid: the path is absolute, leaves the folder, or has another meaning on another system
    """
    if not is_portable(name):
        raise source.refuse(f"has an entry {name!a} with a backslash, a drive letter or control characters in its name")
    if _BAD_PART.search(name):
        raise source.refuse(f"has an entry {name!a} whose name is not a plain relative path")
