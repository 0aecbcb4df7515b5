"""
Limits of an uploaded archive: the number of entries and headers, the length of names, the decompressed size.

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

from typing import Final

from .source import Source

MOST_ENTRIES: Final = 100_000
FREE_ENTRIES: Final = 20_000  # a file of any size may have as many
ENTRY_SIZE: Final = 16  # bytes of the file per further entry; the densest packages of icons have 44
HEADERS_OF_ENTRY: Final = 2  # some tools write an extended header before each entry
RECORDS_OF_ENTRY: Final = 10  # pax records; bsdtar writes up to eight
LONGEST_NAME: Final = 4096  # bytes of an entry's name; PATH_MAX of Linux
NAMES_SIZE: Final = 16 * 1024 * 1024  # bytes of all names together; about 160 per entry at MOST_ENTRIES
MOST_FOLDERS: Final = 1_000_000  # path components that are compared with the links of an archive

PIECE: Final = 256 * 1024  # bytes that are read at once, and at most decompressed at once

FREE_SIZE: Final = 64 * 1024 * 1024  # bytes; up to this decompressed size any compression ratio is allowed
MOST_RATIO: Final = 50  # compression ratio above FREE_SIZE; real packages stay far below
UNPACKED_SIZE: Final = 10 * 1024**3  # bytes; no file may decompress to more


def entries_budget(source: Source) -> int:
    """The maximum number of entries of an archive file."""
    return min(MOST_ENTRIES, max(FREE_ENTRIES, source.size // ENTRY_SIZE))


def unpacked_budget(source: Source) -> int:
    """The maximum decompressed size of an archive file, in bytes."""
    return min(UNPACKED_SIZE, max(FREE_SIZE, source.size * MOST_RATIO))
