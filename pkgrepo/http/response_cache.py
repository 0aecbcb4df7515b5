"""A cache in memory, bounded in bytes, which counts how it is used."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from pkgrepo.concurrency.lru import Lru

T = TypeVar("T")


class ResponseCache(Lru[Hashable, T]):
    """
    Entries by key; the least recently used are evicted when all exceed ``limit`` bytes together.

    What an entry is (a L{PreparedAnswer}, say, or several with what they depend on), and whether it is still valid, its
    owner decides. An entry larger than an eighth of the limit is not kept.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.hits = 0
        self.misses = 0

    @property
    def largest(self) -> int:
        """Bytes of the largest entry that is kept."""
        return self.limit // 8

    def get(self, key: Hashable) -> T | None:
        """The entry of a key, or None."""
        found = super().get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, key: Hashable, value: T, size: int = 1) -> bool:
        """Keep an entry of ``size`` bytes in place of the present one. Returns whether there was one."""
        return super().put(key, value, size) if size <= self.largest else self.pop(key) is not None
