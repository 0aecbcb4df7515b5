"""What caches keep, in the order in which it is evicted, and what an image loses with a manifest."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.storage.catalog import cached_units
from pkgrepo.storage.catalog.cached_units import START, CachedUnit
from pkgrepo.storage.catalog.usage_counts import DAY_MS
from tests.support.catalog import MemoryCatalog, add_repository

A, B, C = (bytes([number]) * 32 for number in (1, 2, 3))


def add_file(tx: Any, number: int, package_id: int, version_id: int, size: int, created_ms: int) -> None:
    tx.execute(
        """
        INSERT INTO file (id, repository_id, storage_id, path, package_id, version_id, sha256, size, media_type,
            created_at)
        VALUES (?, 1, 1, ?, ?, ?, ?, ?, '', ?)
        """,
        (number, f"f{number}", package_id, version_id, A, size, created_ms),
    )


def fill(tx: Any) -> None:
    """Packages one (versions 1 with two files, and 2) and two; a document of each, and one of a package not kept."""
    for number, key in ((1, "one"), (2, "two")):
        tx.execute(
            "INSERT INTO package (id, repository_id, key, name, created_at, updated_at) VALUES (?, 1, ?, ?, 0, 0)",
            (number, key, key),
        )
    for number, package_id in ((1, 1), (2, 1), (3, 2)):
        tx.execute(
            """
            INSERT INTO version (id, package_id, key, text, sort, published_at, publisher)
            VALUES (?, ?, ?, '', ?, 0, '')
            """,
            (number, package_id, str(number), b""),
        )
    add_file(tx, 1, 1, 1, 10, 100)
    add_file(tx, 2, 1, 1, 20, 200)
    add_file(tx, 3, 1, 2, 30, 150)
    add_file(tx, 4, 2, 3, 40, 50)
    tx.execute(
        """
        INSERT INTO download_count (kind, item_id, day, repository_id, package_id, count)
        VALUES ('file', 4, 7, 1, 2, 1)
        """
    )
    tx.execute("INSERT INTO package_download (package_id, day, count) VALUES (2, 7, 1)")
    for key, package, checked_ms in (("d/one", "one", 120), ("d/seen", "seen", 60), ("d/two", "two", 0)):
        tx.execute(
            """
            INSERT INTO upstream_document (repository_id, key, package_key, route, fetched_at, checked_at, fresh_until)
            VALUES (1, ?, ?, 'up', 1, ?, 0)
            """,
            (key, package, checked_ms),
        )


@pytest.fixture
def catalog() -> MemoryCatalog:
    found = MemoryCatalog()
    add_repository(found, 1)
    add_repository(found, 2)
    found.do(fill)
    return found


def test_units_are_ordered_by_their_last_use(catalog: MemoryCatalog) -> None:
    expected = [
        CachedUnit("document", "seen", "d/seen", 1, 0, 60, 60),
        CachedUnit("document", "one", "d/one", 1, 0, 120, 120),
        CachedUnit("version", "one", "2", 1, 30, 150, 150),
        CachedUnit("version", "one", "1", 2, 30, 200, 200),
        CachedUnit("document", "two", "d/two", 1, 0, 0, 8 * DAY_MS),
        CachedUnit("version", "two", "3", 1, 40, 50, 8 * DAY_MS),
    ]
    assert catalog.peek(cached_units.oldest_units, 1, limit=10) == expected
    assert catalog.peek(cached_units.oldest_units, 2, limit=10) == []
    found: list[CachedUnit] = []
    after = START
    while page := catalog.peek(cached_units.oldest_units, 1, after=after, limit=2):
        found += page
        after = page[-1].position
    assert found == expected
    assert catalog.peek(cached_units.units_of_package, 1, "one") == expected[1:4]


def test_packages_are_listed_with_those_of_which_only_documents_are_kept(catalog: MemoryCatalog) -> None:
    assert catalog.peek(cached_units.cached_packages, 1, after="", limit=10) == ["one", "seen", "two"]
    assert catalog.peek(cached_units.cached_packages, 1, after="one", limit=1) == ["seen"]
    assert catalog.peek(cached_units.cached_packages, 1, after="two", limit=10) == []


def test_an_image_loses_a_blob_with_the_last_manifest_that_refers_to_it() -> None:
    def fill_images(tx: Any) -> None:
        tx.execute(
            """
            INSERT INTO package (id, repository_id, key, name, created_at, updated_at)
            VALUES (1, 1, 'app', 'app', 0, 0)
            """
        )
        for sha256, size in ((A, 100), (B, 1000), (C, 5)):
            tx.execute(
                """
                INSERT INTO blob (storage_id, sha256, size, locator, state, digests, created_at, touched_at)
                VALUES (1, ?, ?, ?, 'live', '{}', 0, 0)
                """,
                (sha256, size, sha256.hex()),
            )
        for sha256 in (A, B):
            tx.execute("INSERT INTO package_blob (package_id, sha256, touched_at) VALUES (1, ?, 0)", (sha256,))
        for number, digest in ((1, "sha256:m1"), (2, "sha256:m2")):
            tx.execute(
                """
                INSERT INTO manifest (id, repository_id, package_id, digest, sha256, media_type, size, created_at)
                VALUES (?, 1, 1, ?, ?, '', 1, 0)
                """,
                (number, digest, C),
            )
        for number, sha256 in ((1, A), (1, B), (2, A)):
            tx.execute(
                "INSERT INTO manifest_ref (manifest_id, package_id, digest, kind) VALUES (?, 1, ?, 'layer')",
                (number, f"sha256:{sha256.hex()}"),
            )

    catalog = MemoryCatalog()
    add_repository(catalog, 1)
    catalog.do(fill_images)
    sizes = cached_units.sizes_with_blobs
    assert catalog.peek(sizes, 1, 1, "app", ["sha256:m1", "sha256:m2"]) == [(2, 1001), (2, 101)]
    assert catalog.peek(sizes, 1, 1, "app", ["sha256:m2"]) == [(1, 1)]
    assert catalog.peek(sizes, 1, 1, "app", ["sha256:gone"]) == [(1, 0)]
