import pytest
from attrs import evolve

from pkgrepo.storage.catalog.blobs import blobs, gc
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

HOUR = 3_600_000


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.storage_id = catalog.do(add_repository).storage_id
    return catalog


def claim(catalog, info, now_ms=NOW):
    return catalog.do(blobs.claim_blob, catalog.storage_id, info, now_ms)


def find(catalog, info):
    return catalog.peek(blobs.find_blob, catalog.storage_id, info.sha256)


def touched_at(catalog, info):
    return catalog.tx.one("SELECT touched_at FROM blob WHERE sha256 = ?", (bytes.fromhex(info.sha256),))[0]


def test_a_new_blob_is_stored_unchanged(catalog):
    info = make_blob(b"x", md5="aa")
    assert find(catalog, info) is None
    assert claim(catalog, info) == info == find(catalog, info)


def test_a_second_claim_keeps_the_first_copy_and_adds_digests(catalog):
    first, second = make_blob(b"x", md5="aa"), make_blob(b"x", copy=2, sha1="bb")
    claim(catalog, first)
    taken = claim(catalog, second)
    assert taken.locator == first.locator
    assert taken.digests == {"sha256": first.sha256, "md5": "aa", "sha1": "bb"}
    assert find(catalog, first) == taken


def test_storages_do_not_share_blobs(catalog):
    first, second = make_blob(b"x"), make_blob(b"x", copy=2)
    claim(catalog, first)
    other = catalog.do(add_repository, storage="other").storage_id
    assert catalog.do(blobs.claim_blob, other, second, NOW) == second


def test_claims_within_touch_ms_write_touched_at_once(catalog):
    info = make_blob(b"x")
    claim(catalog, info, NOW)
    claim(catalog, info, NOW + 1000)
    assert touched_at(catalog, info) == NOW
    claim(catalog, info, NOW + HOUR)
    assert touched_at(catalog, info) == NOW + HOUR


def test_touch_returns_whether_the_blob_is_live(catalog):
    info = make_blob(b"x")

    def touch(now_ms):
        return catalog.do(blobs.touch_blob, catalog.storage_id, info.sha256, now_ms)

    assert not touch(NOW)
    claim(catalog, info)
    assert touch(NOW + HOUR)
    assert touched_at(catalog, info) == NOW + HOUR
    catalog.do(blobs.mark_suspect, catalog.storage_id, info.sha256, info.locator)
    assert not touch(NOW + 2 * HOUR)


def test_a_new_copy_replaces_that_of_a_suspect_blob(catalog):
    info = make_blob(b"x")
    claim(catalog, info)
    catalog.do(blobs.mark_suspect, catalog.storage_id, info.sha256, info.locator)
    fresh = make_blob(b"x", copy=2)
    assert claim(catalog, fresh) == fresh == find(catalog, fresh)
    assert catalog.do(blobs.touch_blob, catalog.storage_id, fresh.sha256, NOW)


def test_the_digests_of_a_blob_stay_known_when_its_copy_is_replaced(catalog):
    info = evolve(make_blob(b"x"), digests={"sha256": make_blob(b"x").sha256, "sha1": "11"})
    claim(catalog, info)
    catalog.do(blobs.mark_suspect, catalog.storage_id, info.sha256, info.locator)
    fresh = evolve(make_blob(b"x", copy=2), digests={"sha256": info.sha256, "md5": "22"})
    assert claim(catalog, fresh).digests == {"sha256": info.sha256, "sha1": "11", "md5": "22"}
    assert find(catalog, fresh).digests == {"sha256": info.sha256, "sha1": "11", "md5": "22"}


def test_a_verified_blob_is_live_again(catalog):
    info = make_blob(b"x")
    claim(catalog, info)
    catalog.do(blobs.mark_suspect, catalog.storage_id, info.sha256, info.locator)
    catalog.do(blobs.set_verified, catalog.storage_id, [info.sha256], NOW + 1)
    assert catalog.do(blobs.touch_blob, catalog.storage_id, info.sha256, NOW)


def test_blobs_are_counted_and_listed_in_pages(catalog):
    infos = sorted((make_blob(b"%d" % n) for n in range(12)), key=lambda info: info.sha256)
    for info in infos:
        claim(catalog, info)
    catalog.do(gc.mark_deleting, catalog.storage_id, [infos[3].sha256], NOW + 1, NOW)
    seen, after = [], b""
    while page := catalog.peek(blobs.list_blobs, catalog.storage_id, after, 5):
        seen += page
        after = bytes.fromhex(page[-1].sha256)
    assert seen == infos[:3] + infos[4:]
    assert catalog.peek(blobs.count_blobs, catalog.storage_id) == 12
    assert catalog.peek(blobs.usage, catalog.storage_id) == (12, sum(info.size for info in infos))
    assert catalog.peek(blobs.usage, 99) == (0, 0)


def test_locators_without_a_row_are_found(catalog):
    kept = make_blob(b"x")
    opaque = evolve(make_blob(b"opaque"), locator="01J9ZK")
    misleading = evolve(make_blob(b"z"), locator=f"ab/{make_blob(b'x').sha256}.7")
    for info in (kept, opaque, misleading):
        claim(catalog, info)
    stray = make_blob(b"x", copy=2)
    other = make_blob(b"y")
    locators = [each.locator for each in (other, kept, opaque, stray, misleading)]
    assert catalog.peek(blobs.unknown_locators, catalog.storage_id, locators) == [other.locator, stray.locator]
    assert catalog.peek(blobs.unknown_locators, catalog.storage_id, []) == []
