import pytest

from pkgrepo.errors import AlreadyExists, Conflict, NotFound
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.server import purge, repositories, settings, storages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob


@pytest.fixture
def catalog():
    return MemoryCatalog()


def add(catalog, name="Main"):
    return catalog.do(storages.add_storage, name=name, kind="Local", settings={"path": "/x"}, now_ms=NOW)


def test_a_storage_is_found_by_id_and_by_name_in_any_case(catalog):
    storage = add(catalog)
    assert (storage.name, storage.kind, storage.settings, storage.active) == ("Main", "Local", {"path": "/x"}, True)
    assert storage.created_at.timestamp() * 1000 == NOW
    assert catalog.peek(storages.find_storage, storage.uid) == storage
    assert catalog.peek(storages.find_storage, "mAIN") == storage
    assert catalog.peek(storages.find_storage, "other") is None


def test_names_are_unique_in_any_case(catalog):
    add(catalog, "Main")
    other = add(catalog, "other")
    with pytest.raises(AlreadyExists):
        add(catalog, "mAIN")
    with pytest.raises(AlreadyExists):
        catalog.do(storages.update_storage, other.id, now_ms=NOW, name="MAIN")
    assert [each.name for each in catalog.peek(storages.list_storages)] == ["Main", "other"]


def test_an_update_changes_the_given_fields(catalog):
    storage = add(catalog)
    changed = catalog.do(storages.update_storage, storage.id, now_ms=NOW + 5, name="MAIN", active=False)
    assert (changed.name, changed.active, changed.settings) == ("MAIN", False, storage.settings)
    assert changed.updated_at > changed.created_at == storage.created_at
    with pytest.raises(NotFound):
        catalog.do(storages.update_storage, 99, now_ms=NOW, active=True)


def test_every_change_increments_the_config_serial(catalog):
    seen = [catalog.peek(repositories.config_serial)]
    storage = add(catalog)
    seen.append(catalog.peek(repositories.config_serial))
    catalog.do(storages.update_storage, storage.id, now_ms=NOW, active=False)
    seen.append(catalog.peek(repositories.config_serial))
    catalog.do(storages.remove_storage, storage.id)
    seen.append(catalog.peek(repositories.config_serial))
    assert sorted(set(seen)) == seen


def test_a_storage_in_use_stays_until_its_repositories_are_purged(catalog):
    repository = catalog.do(add_repository)
    catalog.do(blobs.claim_blob, repository.storage_id, make_blob(b"x"), NOW)
    with pytest.raises(Conflict, match="used by 1 repositories"):
        catalog.do(storages.remove_storage, repository.storage_id)
    catalog.do(repositories.remove_repository, repository.id, now_ms=NOW)
    with pytest.raises(Conflict, match="purge"):
        catalog.do(storages.remove_storage, repository.storage_id)
    while catalog.do(purge.purge_repository, repository.id):
        pass
    catalog.do(storages.remove_storage, repository.storage_id)
    assert catalog.peek(storages.list_storages) == []
    with pytest.raises(NotFound):
        catalog.do(storages.remove_storage, repository.storage_id)


def test_a_value_is_replaced():
    catalog = MemoryCatalog()
    catalog.do(settings.put, "motd", "one")
    catalog.do(settings.put, "motd", "two")
    assert catalog.peek(settings.get, "motd") == "two"
    assert catalog.peek(settings.get, "other") is None


def test_a_secret_is_created_once():
    catalog = MemoryCatalog()
    secret = catalog.do(settings.ensure_secret, "signing")
    assert len(secret) >= 43
    assert catalog.do(settings.ensure_secret, "signing") == secret
    assert catalog.do(settings.ensure_secret, "other") != secret


def test_the_server_keeps_its_id():
    catalog = MemoryCatalog()
    assert catalog.peek(settings.server_uid) is None
    uid = catalog.do(settings.ensure_server_uid)
    assert catalog.do(settings.ensure_server_uid) == uid == catalog.peek(settings.server_uid)
