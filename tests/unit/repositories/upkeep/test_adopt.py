"""Storages of a lost catalog are added where they are found, and reported otherwise."""

import pytest

from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.repositories.upkeep.adopt import adopt_listed, adopt_named, adopt_storage, move_storage
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.catalog.server import storages
from pkgrepo.storage.folders import StorageEntry, StorageFolders, StoragesFile
from pkgrepo.storage.process_lock import ProcessLock
from tests.support.catalog import MemoryCatalog
from tests.support.repositories import NOW


@pytest.fixture
def catalog():
    return MemoryCatalog()


def make_store(folder, uid):
    """What stands in a storage's folder."""
    folder.mkdir()
    (folder / "format").write_text(f"pkgrepo blobs 1\nstorage {uid}\n")
    return folder


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "data").mkdir()
    return StorageFolders(tmp_path / "data", "catalog", Durability("never"))


def listed(catalog):
    return [(each.uid, each.name, each.settings["path"]) for each in catalog.peek(storages.list_storages)]


def know(folders, *known):
    for each in known:
        StoragesFile(folders.data).add(each)


def test_listed_storages_are_added_again(catalog, folders, tmp_path):
    know(
        folders,
        StorageEntry(uid="id-a", name="a", path=str(make_store(tmp_path / "a", "id-a"))),
        StorageEntry(uid="id-b", name="b", path=str(make_store(tmp_path / "b", "somebody-elses"))),
        StorageEntry(uid="id-c", name="c", path=str(tmp_path / "c")),
        StorageEntry(uid="id-d", name="d", path=make_store(folders.data / "d", "id-d").name),
    )
    for _ in range(2):
        problems = catalog.do(adopt_listed, folders, NOW)
        assert [each.split("'")[1] for each in problems] == ["b", "c"]
        assert listed(catalog) == [("id-a", "a", str(tmp_path / "a")), ("id-d", "d", "d")]


def test_a_listed_name_that_is_in_use_is_reported(catalog, folders, tmp_path):
    know(folders, StorageEntry(uid="id-a", name="A", path=str(make_store(tmp_path / "a", "id-a"))))
    catalog.do(storages.add_storage, name="a", kind="Local", settings={"path": "/"}, now_ms=NOW, uid="new")
    (problem,) = catalog.do(adopt_listed, folders, NOW)
    assert f"--storage OTHER-NAME={tmp_path / 'a'}" in problem
    catalog.do(adopt_named, folders, {"older": tmp_path / "a"}, NOW)
    assert catalog.do(adopt_listed, folders, NOW) == []
    assert [uid for uid, _, _ in listed(catalog)] == ["new", "id-a"]


def test_a_named_folder_is_added_once(catalog, folders, tmp_path):
    folder = make_store(tmp_path / "a", "id-a")
    for _ in range(2):
        catalog.do(adopt_named, folders, {"a": folder}, NOW)
    assert listed(catalog) == [("id-a", "a", str(folder))]
    with pytest.raises(Conflict, match="has the storage 'a'"):
        catalog.do(adopt_named, folders, {"b": folder}, NOW)
    with pytest.raises(Conflict, match="cannot be called 'a'"):
        catalog.do(adopt_named, folders, {"a": make_store(tmp_path / "other", "id-o")}, NOW)
    with pytest.raises(Invalid, match="holds no storage"):
        catalog.do(adopt_named, folders, {"c": tmp_path / "nothing"}, NOW)


def test_a_storage_of_an_existing_catalog_is_not_added(catalog, folders, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "pkgrepo.db").touch()
    far = make_store(tmp_path / "far", "id-far")
    StorageFolders(other, "another", Durability("never")).claim(far)
    know(folders, StorageEntry(uid="id-far", name="far", path=str(far)))
    (problem,) = catalog.do(adopt_listed, folders, NOW)
    assert f"belongs to the catalog in {other}" in problem
    with pytest.raises(Conflict, match="belongs to the catalog in"):
        catalog.do(adopt_named, folders, {"far": far}, NOW)
    assert listed(catalog) == []
    assert catalog.do(adopt_storage, folders, "far", far) == far
    catalog.do(adopt_named, folders, {"far": far}, NOW)
    assert listed(catalog) == [("id-far", "far", str(far))]


def test_a_storage_of_a_lost_database_is_added_when_it_was_adopted(catalog, folders, tmp_path):
    far = make_store(tmp_path / "far", "id-far")
    StorageFolders(tmp_path / "data", "lost", Durability("never"), home="postgresql:1/2").claim(far)
    know(folders, StorageEntry(uid="id-far", name="far", path=str(far)))
    (problem,) = catalog.do(adopt_listed, folders, NOW)
    assert f"'pkgrepo storage adopt far {far}'" in problem
    assert catalog.do(adopt_storage, folders, "far", None, far) == far
    assert catalog.do(adopt_listed, folders, NOW) == []
    assert listed(catalog) == [("id-far", "far", str(far))]


def test_a_storage_is_adopted_where_it_is(catalog, folders, tmp_path):
    with pytest.raises(NotFound):
        catalog.do(adopt_storage, folders, "far", None)
    with pytest.raises(Invalid, match="holds no storage"):
        catalog.do(adopt_storage, folders, "far", tmp_path / "far")
    with pytest.raises(Invalid, match=f"{tmp_path / 'given'} holds no storage"):
        catalog.do(adopt_storage, folders, "far", tmp_path / "far", tmp_path / "given")
    far = make_store(tmp_path / "far", "id-far")
    settings = {"path": str(far)}
    catalog.do(storages.add_storage, name="far", kind="Local", settings=settings, now_ms=NOW, uid="another")
    with pytest.raises(Conflict, match="belongs to storage id-far, not to another"):
        catalog.do(adopt_storage, folders, "far", None)
    with pytest.raises(Conflict, match=f"is at {far}; 'pkgrepo storage move far PATH'"):
        catalog.do(adopt_storage, folders, "far", None, tmp_path / "given")


def test_a_storage_that_a_server_uses_is_not_moved(catalog, folders, tmp_path):
    far = make_store(tmp_path / "far", "id-far")
    moved = make_store(tmp_path / "moved", "id-far")
    catalog.do(adopt_named, folders, {"far": far}, NOW)
    for busy in (far, moved):
        lock = ProcessLock(busy)
        lock.acquire()
        with pytest.raises(Conflict, match=f"a server works in {busy}"):
            catalog.do(move_storage, folders, "far", moved, empty=False, now_ms=NOW)
        with pytest.raises(Conflict, match="a server works in"):
            catalog.do(adopt_storage, folders, "other", busy)
        lock.release()
    catalog.do(move_storage, folders, "far", moved, empty=False, now_ms=NOW)
    assert listed(catalog) == [("id-far", "far", str(moved))]
