"""Bounded caches in memory, with eviction of the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """
    Entries by key; the least recently used are evicted when the sizes of all exceed ``limit``.

    The size of an entry is 1 unless ``put`` says another one, so the limit is that of their number. ``on_evict`` is
    called with each entry that is evicted.
    """

    def __init__(self, limit: int, on_evict: Callable[[V], object] | None = None) -> None:
        self.limit = limit
        self._on_evict = on_evict
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

    def put(self, key: K, value: V, size: int = 1) -> bool:
        """Keep an entry in place of the present one. Returns whether there was one."""
        before = self._entries.pop(key, None)
        self._entries[key] = (value, size)
        self.size += size if before is None else size - before[1]
        while self.size > self.limit:
            _, (evicted, freed) = self._entries.popitem(last=False)
            self.size -= freed
            if self._on_evict is not None:
                self._on_evict(evicted)
        return before is not None

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


T = TypeVar("T")


class SizedCache(Lru[Hashable, T]):
    """
    A cache of what is sent to clients, bounded in bytes, which counts how it is used.

    An entry larger than an eighth of the limit is not kept. ``full`` are the bytes that are of use to it, which is its
    limit unless L{share_memory} has changed that.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.full = limit
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


class SharesMemory(Protocol):
    """A cache that is bounded in bytes: to ``limit``, of ``full`` that are of use to it."""

    full: int
    limit: int


def share_memory(caches: Collection[SharesMemory], memory: int | None, usable: int) -> None:
    """
    Limit all caches together to ``memory`` bytes, each to its part of what is of use to all.

    If ``memory`` is None it is what is of use to them, but at most ``usable`` bytes.
    """
    full = sum(each.full for each in caches)
    for each in caches:
        each.limit = each.full * (min(full, usable) if memory is None else memory) // full
