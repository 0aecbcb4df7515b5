"""Upload sessions in the catalog: leases and expiry."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Forbidden
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


def test_a_start_that_is_alone_releases_all_leases() -> None:
    catalog = catalog_with_upload()
    catalog.do(uploads.lease_upload, UID, "killed", NOW + 30, NOW)
    catalog.do(uploads.release_all_leases)
    found = catalog.do(uploads.lease_upload, UID, "one", NOW + 30, NOW)
    assert (found.leased, found.abandoned) == (False, False)
    assert not catalog.do(uploads.save_upload, UID, "killed", b"lost", 5, NOW)


@pytest.mark.parametrize("user_id", [1, None])
def test_the_open_uploads_of_a_user_are_bounded(monkeypatch: pytest.MonkeyPatch, user_id: int | None) -> None:
    monkeypatch.setattr(uploads, "MOST_OPEN", 3)
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)

    def open_one(uid: str, now_ms: int, user_id: int | None = user_id) -> None:
        catalog.peek(uploads.check_room, user_id, now_ms)
        place = {"repository_id": repository.id, "storage_id": repository.storage_id, "package_key": "app"}
        catalog.do(uploads.add_upload, uid=uid, user_id=user_id, state=b"", now_ms=now_ms, **place)

    for number in range(3):
        open_one(f"old{number}", NOW + number)
    with pytest.raises(Forbidden, match="3 unfinished uploads"):
        open_one("refused", NOW + uploads.IDLE_MS)
    open_one("of-another-user", NOW + uploads.IDLE_MS, 2)
    catalog.do(uploads.lease_upload, "old0", "holder", NOW + uploads.IDLE_MS + 30, NOW + uploads.IDLE_MS)
    open_one("new", NOW + uploads.IDLE_MS + 2)  # the second one has been idle for an hour
    found = [catalog.peek(uploads.find_upload, f"old{number}", NOW + 3) is not None for number in range(3)]
    assert found == [True, False, True]
    with pytest.raises(Forbidden):
        open_one("refused", NOW + uploads.IDLE_MS + 2)
    catalog.do(uploads.remove_upload, "new")
    open_one("again", NOW + uploads.IDLE_MS + 2)
