"""
Limits of an uploaded archive: its entries, headers and names, and its size when it is unpacked.

Each limit keeps the inspection of 1 MB of upload below one second of processor time. Where large real archives need
more, the limit grows with the size of the file.

=====================  ==========================================  =================================================
counted                limit                                       cost of one
=====================  ==========================================  =================================================
entries                20,000, or one for 16 bytes of the file;    10 us
                       100,000 at most
tar headers            2 for each entry; extended ones count       6 us
pax records            10 for each entry                           0.6 us
bytes of extended      16 MiB                                      copied once
headers
bytes of names         16 MiB                                      12 ns
folders in paths       1,000,000, where an archive has links       0.2 us
gzip streams           1,000                                       10 us
bytes unpacked         64 MiB, or 50 for each of the file;         2 ns
                       10 GiB at most
=====================  ==========================================  =================================================
"""

from __future__ import annotations

from typing import Final

from .source import Source

MOST_ENTRIES: Final = 100_000
FREE_ENTRIES: Final = 20_000  # however small the file is
ENTRY_SIZE: Final = 16  # bytes of the file for each entry beyond; the densest packages of icons have 44
HEADERS_OF_ENTRY: Final = 2  # some tools write an extended header before each entry
RECORDS_OF_ENTRY: Final = 10  # pax records; bsdtar writes up to eight
LONGEST_NAME: Final = 4096  # bytes of an entry's name; what file systems take
NAMES_SIZE: Final = 16 * 1024 * 1024  # bytes of all names together; some 160 for each of the most entries
MOST_FOLDERS: Final = 1_000_000  # path components that are compared with an archive's links

FREE_SIZE: Final = 64 * 1024 * 1024  # bytes; up to this size any ratio is allowed
MOST_RATIO: Final = 50  # unpacked to packed, beyond that; real packages stay far below
UNPACKED_SIZE: Final = 10 * 1024**3  # bytes in any case


def entries_budget(source: Source) -> int:
    """The number of entries that the file may have."""
    return min(MOST_ENTRIES, max(FREE_ENTRIES, source.size // ENTRY_SIZE))


def unpacked_budget(source: Source) -> int:
    """The size in bytes that the file may unpack to."""
    return min(UNPACKED_SIZE, max(FREE_SIZE, source.size * MOST_RATIO))
