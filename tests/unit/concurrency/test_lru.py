"""Caches that are bounded, and made once for a stamp."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.concurrency.lru import Lru, SizedCache, share_memory
from pkgrepo.concurrency.single_flight import StampCache


def test_least_recently_used_entry_is_evicted() -> None:
    evicted: list[int] = []
    cache: Lru[str, int] = Lru(2, evicted.append)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert not cache.put("c", 3)
    assert cache.put("c", 4)
    assert cache.items() == [("a", 1), ("c", 4)]
    assert evicted == [2]


def test_sizes_count_and_are_given_back() -> None:
    cache: Lru[str, str] = Lru(10)
    cache.put("a", "x", 6)
    cache.put("b", "y", 4)
    assert cache.pop("a") == "x"
    assert cache.pop("a") is None
    cache.put("c", "z", 6)
    assert list(cache) == ["b", "c"]
    cache.put("d", "large", 11)
    assert (len(cache), cache.size) == (0, 0)


def test_value_of_a_stamp_is_made_once_and_replaced_by_that_of_the_next() -> None:
    cache: StampCache[str, str] = StampCache(9)
    under_way: list[Deferred[str]] = []

    async def make() -> str:
        under_way.append(Deferred())
        return await under_way[-1]

    both = [Deferred.fromCoroutine(cache.get("key", 1, make)) for _ in range(2)]
    assert len(under_way) == 1
    under_way[0].callback("one")
    assert [each.result for each in both] == ["one", "one"]
    assert Deferred.fromCoroutine(cache.get("key", 1, make)).result == "one"
    third = Deferred.fromCoroutine(cache.get("key", 2, make))
    assert cache.latest("key") == "one"
    under_way[1].callback("two")
    assert third.result == cache.latest("key") == "two"


@pytest.mark.parametrize(
    ("memory", "usable", "limits"),
    [(None, 10_000, [600, 200]), (None, 400, [300, 100]), (80, 10_000, [60, 20]), (1600, 400, [1200, 400])],
    ids=["enough", "scarce", "less", "more"],
)
def test_caches_share_memory_in_the_proportions_of_what_is_of_use(
    memory: int | None, usable: int, limits: list[int]
) -> None:
    caches = [SizedCache[str](600), SizedCache[str](200)]
    for _ in range(2):  # it may be said again
        share_memory(caches, memory, usable)
        assert [each.limit for each in caches] == limits
