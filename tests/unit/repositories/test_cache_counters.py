"""The use of caches is collected in memory and written by a flush."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFull
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.storage.catalog.usage_counts import CacheCounts, cache_counts
from tests.support.catalog import MemoryCatalog
from tests.support.repositories import FixedClock


class FullCatalog(MemoryCatalog):
    """A catalog that cannot be written while it is ``full``."""

    full = False

    async def write(self, command: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self.full:
            raise StorageFull("catalog")
        return await super().write(command, *args, **kwargs)


@pytest.fixture
def catalog() -> FullCatalog:
    return FullCatalog()


@pytest.fixture
def counters(catalog: FullCatalog) -> CacheCounters:
    return CacheCounters(catalog=catalog, clock=FixedClock(), reactor=Clock())


def flush(counters: CacheCounters) -> None:
    assert Deferred.fromCoroutine(counters.flush()).called


def test_counts_are_added_to_those_of_before(counters: CacheCounters, catalog: FullCatalog) -> None:
    for _ in range(2):
        counters.add(1, CacheCounts(hits=1))
        counters.add(1, CacheCounts(misses=2))
        counters.add_traffic(1, 500, 0.25)
        counters.add(2, CacheCounts(stale=1))
        flush(counters)
    expected = CacheCounts(hits=2, misses=4, fetched_bytes=1000, upstream_ms=500)
    assert catalog.peek(cache_counts, 1) == expected
    assert catalog.peek(cache_counts, 2) == CacheCounts(stale=2)
    assert catalog.peek(cache_counts, 3) == CacheCounts()


def test_counts_wait_while_the_catalog_is_full(counters: CacheCounters, catalog: FullCatalog) -> None:
    catalog.full = True
    for _ in range(2):
        counters.add(1, CacheCounts(hits=1))
        flush(counters)
    catalog.full = False
    flush(counters)
    flush(counters)
    assert catalog.peek(cache_counts, 1) == CacheCounts(hits=2)


@pytest.mark.parametrize(
    ("counts", "ratio"),
    [
        (CacheCounts(), None),
        (CacheCounts(absent=3), None),
        (CacheCounts(hits=3, misses=1), 0.75),
        (CacheCounts(hits=1, confirmed=1, stale=1, misses=1), 0.5),
    ],
)
def test_hit_ratio_is_the_part_without_an_upstream(counts: CacheCounts, ratio: float | None) -> None:
    assert counts.hit_ratio == ratio
