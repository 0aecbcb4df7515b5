"""A bounded cache in memory, with eviction of the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """
    Entries by key; the least recently used are evicted when the sizes of all exceed ``limit``.

    The size of an entry is 1 unless ``put`` says another one, so the limit is that of their number.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys as they are now, the least recently used first: entries may be removed on the way."""
        return iter(list(self._entries))

    def get(self, key: K) -> V | None:
        """The entry of a key, which counts as used, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: int = 1) -> list[V]:
        """Keep an entry in place of the present one. Returns the evicted ones; one larger than the limit is, too."""
        self.pop(key)
        self._entries[key] = (value, size)
        self.size += size
        evicted = []
        while self.size > self.limit:
            _, (oldest, freed) = self._entries.popitem(last=False)
            self.size -= freed
            evicted.append(oldest)
        return evicted

    def pop(self, key: K) -> V | None:
        """Remove and return the entry of a key, or None."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self.size -= entry[1]
        return entry[0]

    def items(self) -> list[tuple[K, V]]:
        """The keys and entries, the least recently used first."""
        return [(key, value) for key, (value, _) in self._entries.items()]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.size = 0
