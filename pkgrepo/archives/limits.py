"""How much an uploaded archive may be, and may become when somebody unpacks it."""

from __future__ import annotations

from typing import Final

from .source import Source

MOST_ENTRIES: Final = 100_000
LONGEST_NAME: Final = 4096  # bytes of an entry's name; what file systems take
NAMES_SIZE: Final = 64 * 1024 * 1024  # bytes of all names together; over 600 for each of the most entries

FREE_SIZE: Final = 64 * 1024 * 1024  # bytes; what unpacks to no more may be packed as tightly as it likes
MOST_RATIO: Final = 50  # unpacked to packed, beyond that; real packages stay far below
UNPACKED_SIZE: Final = 10 * 1024**3  # bytes in any case


def unpacked_budget(source: Source) -> int:
    """Bytes that the file may become."""
    return min(UNPACKED_SIZE, max(FREE_SIZE, source.size * MOST_RATIO))
