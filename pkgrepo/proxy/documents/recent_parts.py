"""Small parts files that were made or read last, in memory: a cold install reads none from the disk."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pkgrepo.proxy.parts.file import PartsFile

LARGEST: Final = 64 * 1024  # bytes of a parts file; nearly all packages have less than 20 KiB
MEMORY: Final = 32 * 1024 * 1024  # bytes; some 2,000 packages


class RecentParts:
    """Parts files by the sha256 (hex) of their bytes, so that none is ever out of date; at most ``memory`` bytes."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._left = memory
        self._kept: OrderedDict[str, PartsFile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, sha256: str) -> PartsFile | None:
        """An open parts file, which the caller does not close; several threads may read it. None if it is not here."""
        found = self._kept.get(sha256)
        if found is not None:
            self._kept.move_to_end(sha256)
        return found

    def add(self, sha256: str, content: bytes) -> None:
        """Keep a parts file, unless it is large. :raises PartsDamaged: the bytes are no parts file"""
        if len(content) > LARGEST:
            return
        self.drop(sha256)
        parts = self._kept[sha256] = PartsFile(content)
        self._left -= parts.memory
        while self._left < 0:
            self._left += self._kept.popitem(last=False)[1].memory

    def drop(self, sha256: str) -> None:
        """Forget a parts file."""
        found = self._kept.pop(sha256, None)
        if found is not None:
            self._left += found.memory
