"""Upload sessions in the catalog: leases and expiry."""

from __future__ import annotations

from pkgrepo.storage.catalog.blobs import uploads
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

UID = "0" * 32


def catalog_with_upload(now_ms: int = NOW) -> MemoryCatalog:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    catalog.do(
        uploads.add_upload,
        uid=UID,
        repository_id=repository.id,
        storage_id=repository.storage_id,
        package_key="app",
        user_id=1,
        state=b"state",
        now_ms=now_ms,
        algorithms=("sha512",),
    )
    return catalog


def test_a_new_upload_is_found_with_its_values() -> None:
    found = catalog_with_upload().peek(uploads.find_upload, UID, NOW)
    assert (found.package_key, found.user_id, found.state, found.position) == ("app", 1, b"state", 0)
    assert (found.leased, found.algorithms) == (False, ("sha512",))


def test_one_holder_has_the_lease_until_it_saves_or_the_lease_expires() -> None:
    catalog = catalog_with_upload()
    assert not catalog.do(uploads.lease_upload, UID, "one", NOW + 30, NOW).leased
    assert catalog.do(uploads.lease_upload, UID, "two", NOW + 30, NOW).leased
    assert catalog.do(uploads.renew_lease, UID, "one", NOW + 60, NOW)
    assert catalog.do(uploads.lease_upload, UID, "two", NOW + 90, NOW + 59).leased
    taken = catalog.do(uploads.lease_upload, UID, "two", NOW + 90, NOW + 60)
    assert (taken.leased, taken.abandoned) == (False, True)
    assert not catalog.do(uploads.renew_lease, UID, "one", NOW + 99, NOW + 61)
    assert not catalog.do(uploads.save_upload, UID, "one", b"lost", 5, NOW + 61)
    assert catalog.do(uploads.save_upload, UID, "two", b"saved", 7, NOW + 62)
    found = catalog.peek(uploads.find_upload, UID, NOW + 63)
    assert (found.state, found.position, found.leased) == (b"saved", 7, False)


def test_only_the_holder_of_the_lease_removes_an_upload() -> None:
    catalog = catalog_with_upload()
    assert not catalog.do(uploads.lease_upload, UID, "one", NOW + 30, NOW).abandoned
    catalog.do(uploads.lease_upload, UID, "two", NOW + 90, NOW + 60)
    assert not catalog.do(uploads.remove_leased_upload, UID, "one")
    catalog.do(uploads.save_upload, UID, "two", b"saved", 7, NOW + 61)
    assert not catalog.do(uploads.remove_leased_upload, UID, "two")
    catalog.do(uploads.lease_upload, UID, "three", NOW + 99, NOW + 62)
    assert catalog.do(uploads.remove_leased_upload, UID, "three")


def test_a_released_lease_leaves_the_progress_unchanged() -> None:
    catalog = catalog_with_upload()
    catalog.do(uploads.lease_upload, UID, "one", NOW + 30, NOW)
    catalog.do(uploads.release_lease, UID, "another")
    assert catalog.peek(uploads.find_upload, UID, NOW).leased
    catalog.do(uploads.release_lease, UID, "one")
    found = catalog.peek(uploads.find_upload, UID, NOW)
    assert (found.state, found.position, found.leased) == (b"state", 0, False)


def test_an_upload_that_was_not_touched_for_a_day_is_expired() -> None:
    catalog = catalog_with_upload(NOW - uploads.EXPIRES_MS - 1)
    assert catalog.peek(uploads.find_upload, UID, NOW) is None
    assert catalog.do(uploads.lease_upload, UID, "one", NOW + 30, NOW) is None
    repository_id = 1
    assert catalog.peek(uploads.unfinished_uploads, repository_id, NOW)[0] == 0
    catalog.do(
        uploads.add_upload,
        uid="1" * 32,
        repository_id=repository_id,
        storage_id=1,
        package_key="app",
        user_id=1,
        state=b"",
        now_ms=NOW,
    )
    assert not catalog.do(uploads.remove_upload, UID)
    assert catalog.peek(uploads.unfinished_uploads, repository_id, NOW) == (1, NOW)
