"""When manifests of upstreams were first seen."""

from __future__ import annotations

import pytest

from pkgrepo.storage.catalog.images.first_sights import Age, find_age, note_sight
from tests.support.catalog import MemoryCatalog


def test_tag_that_goes_back_has_the_age_of_the_first_time(catalog: MemoryCatalog) -> None:
    for moved_ms, digest in enumerate("abac"):
        catalog.do(note_sight, 1, "app", "1", digest, moved_ms, moved_ms)
    catalog.do(note_sight, 1, "other", "1", "z", 0, 9)
    assert catalog.peek(find_age, 1, "app", "a") == Age(0)
    assert catalog.peek(find_age, 1, "app", "z") == Age(None)


def test_oldest_sight_of_a_tag_is_kept_beyond_the_limit(catalog: MemoryCatalog) -> None:
    for moved_ms in range(8):
        catalog.do(note_sight, 1, "app", "1", f"{moved_ms}", moved_ms, moved_ms, most=3)
    known = [each for each in "01234567" if catalog.peek(find_age, 1, "app", each) != Age(None)]
    assert known[0] == "0"
    assert known[-3:] == ["5", "6", "7"]
    assert len(known) == 5


@pytest.fixture
def catalog() -> MemoryCatalog:
    made = MemoryCatalog()
    made.tx.connection.pragma("foreign_keys", False)
    return made
