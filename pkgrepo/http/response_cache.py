"""A cache in memory, bounded in bytes, with eviction of the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class ResponseCache(Generic[T]):
    """
    Entries by key; the least recently used are evicted when all exceed ``limit`` bytes together.

    What an entry is (a L{PreparedAnswer}, say, or several with what they depend on), and whether it is still valid, its
    owner decides. An entry larger than an eighth of the limit is not kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def largest(self) -> int:
        """Bytes of the largest entry that is kept."""
        return self.limit // 8

    def get(self, key: Hashable) -> T | None:
        """The entry of ``key``, or None."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return entry[0]

    def put(self, key: Hashable, entry: T, size: int) -> bool:
        """Keep ``entry``, of ``size`` bytes, in place of the present one. Returns whether there was one."""
        replaced = self.drop(key)
        if size > self.largest:
            return replaced
        self._entries[key] = (entry, size)
        self.size += size
        while self.size > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed
        return replaced

    def drop(self, key: Hashable) -> bool:
        """Remove the entry of ``key``. Returns whether there was one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self.size -= entry[1]
        return True

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.size = 0
