from attrs import evolve

from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.usage_counts import DAY_MS, CacheCounts, Download
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, publish

ONE = Download(item_id=1, repository_id=1, package_id=5, path="a", user_id=None, token_id=None, at_ms=10 * DAY_MS)


def filled() -> MemoryCatalog:
    """A catalog with a package whose id is that in L{ONE}."""
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    while catalog.do(add_package, repository.id).id != ONE.package_id:
        pass
    return catalog


def add_package(tx, repository_id):
    key = str(len(packages.package_names(tx, repository_id)))
    package, _ = packages.ensure_package(tx, repository_id, key=key, name=key, serial=1, now_ms=NOW)
    return package


def test_downloads_are_counted_by_day_across_batches():
    catalog = filled()
    later = evolve(ONE, at_ms=ONE.at_ms + 1)
    next_day = evolve(ONE, at_ms=11 * DAY_MS, item_id=2)
    catalog.do(usage_counts.record_downloads, [ONE, later, next_day])
    catalog.do(usage_counts.record_downloads, [ONE, evolve(ONE, repository_id=2, package_id=6, item_id=3)])
    assert catalog.peek(usage_counts.downloads_by_day, 1, 10, 12) == [(10, 3), (11, 1)]
    assert catalog.peek(usage_counts.downloads_by_day, 1, 11, 12) == [(11, 1)]
    assert catalog.peek(usage_counts.downloads_of_package, 5) == 4
    assert catalog.peek(usage_counts.downloads_of_package, 99) == 0
    assert catalog.peek(usage_counts.package_downloads_by_day, 5, 10, 12) == [(10, 3), (11, 1)]
    assert catalog.peek(usage_counts.package_downloads_by_day, 5, 11, 12) == [(11, 1)]
    assert catalog.peek(usage_counts.package_downloads_by_day, 6, 10, 12) == []  # it was removed meanwhile


def test_downloads_are_summed_for_repositories_and_versions():
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    first, second = (catalog.do(publish, repository, f"{each}.whl", version=each) for each in ("1.0", "2.0"))
    package_id = first.package_id
    one = evolve(ONE, item_id=first.id, repository_id=repository.id, package_id=package_id)
    later = evolve(one, item_id=second.id, at_ms=30 * DAY_MS)
    gone = evolve(one, item_id=99, repository_id=77, package_id=None)
    catalog.do(usage_counts.record_downloads, [one, later, later, gone, evolve(one, kind="manifest")])
    catalog.do(usage_counts.record_downloads, [evolve(one, at_ms=11 * DAY_MS)])
    found = catalog.peek(usage_counts.downloads_of_repositories, [repository.id, 77], 0)
    assert found == {repository.id: {10: 2, 11: 1, 30: 2}, 77: {}}
    found = catalog.peek(usage_counts.downloads_of_repositories, [repository.id], 11)
    assert found == {repository.id: {11: 1, 30: 2}}
    assert catalog.peek(usage_counts.downloads_by_version, package_id, 0, 9) == [("2.0", 2), ("1.0", 2)]
    assert catalog.peek(usage_counts.downloads_by_version, package_id, 0, 1) == [("2.0", 2)]
    assert catalog.peek(usage_counts.downloads_by_version, package_id, 14, 9) == [("2.0", 2)]


def test_a_row_counts_for_all_its_downloads_and_only_if_it_is_counted():
    catalog = filled()
    many, part = evolve(ONE, count=3, last_ms=ONE.at_ms + 9), evolve(ONE, count=7, counted=False)
    catalog.do(usage_counts.record_downloads, [many, part])
    assert catalog.peek(usage_counts.downloads_by_day, 1, 10, 12) == [(10, 3)]
    assert catalog.peek(usage_counts.downloads_of_package, 5) == 3


def test_storages_are_measured_by_day():
    catalog = MemoryCatalog()
    storage_id = catalog.do(add_repository).storage_id
    for day, size in ((10, 5), (10, 7), (12, 9)):
        catalog.do(usage_counts.note_size, storage_id, day, 1, size)
    catalog.do(usage_counts.note_size, 99, 12, 1, 1)  # it was removed meanwhile
    found = catalog.peek(usage_counts.sizes_since, 10)
    assert [(each.day, each.bytes) for each in found] == [(10, 7), (12, 9)]
    assert [each.day for each in catalog.peek(usage_counts.sizes_since, 11)] == [12]


def test_caches_are_counted_since_a_day():
    catalog = filled()
    counts = {(1, 10): CacheCounts(hits=3), (1, 12): CacheCounts(hits=1, misses=1, upstream_ms=40)}
    catalog.do(usage_counts.add_cache_counts, counts)
    assert catalog.peek(usage_counts.cache_counts_since, 11) == {1: counts[1, 12]}
    assert catalog.peek(usage_counts.cache_counts_since, 10)[1].hits == 4
