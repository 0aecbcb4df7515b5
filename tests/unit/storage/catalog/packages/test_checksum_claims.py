"""Checksums that came before their file."""

from __future__ import annotations

import pytest

from pkgrepo.storage.catalog.packages import checksum_claims
from pkgrepo.storage.catalog.packages.checksum_claims import LASTS_MS, claims_for, put_claim, remove_claims
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog() -> MemoryCatalog:
    catalog = MemoryCatalog()
    catalog.do(add_repository)
    return catalog


def test_the_latest_claim_of_each_algorithm_counts_until_it_expires(catalog: MemoryCatalog) -> None:
    for algorithm, digest in (("md5", "00"), ("sha1", "11"), ("md5", "22")):
        assert catalog.do(put_claim, 1, "a/b.jar", algorithm, digest, NOW)
    assert catalog.do(claims_for, 1, "a/b.jar", NOW) == {"md5": "22", "sha1": "11"}
    assert catalog.do(claims_for, 1, "a/c.jar", NOW) == {}
    assert catalog.do(claims_for, 1, "a/b.jar", NOW + LASTS_MS) == {"md5": "22", "sha1": "11"}
    assert catalog.do(claims_for, 1, "a/b.jar", NOW + LASTS_MS + 1) == {}
    catalog.do(remove_claims, 1, ["a/b.jar"])
    assert catalog.do(claims_for, 1, "a/b.jar", NOW) == {}


def test_housekeeping_removes_expired_claims_in_batches(catalog: MemoryCatalog) -> None:
    for number in range(5):
        catalog.do(put_claim, 1, f"{number}.jar", "md5", "00", NOW + number)
    later = NOW + 3 + LASTS_MS
    removed = [catalog.do(checksum_claims.remove_expired_claims, later, 2) for _ in range(3)]
    assert removed == [2, 1, 0]
    assert catalog.do(claims_for, 1, "3.jar", NOW) == {"md5": "00"}


def test_a_repository_keeps_only_so_many(catalog: MemoryCatalog) -> None:
    assert [catalog.do(put_claim, 1, f"{n}.jar", "md5", "00", NOW, most=3) for n in range(5)] == [True] * 3 + [
        False
    ] * 2
