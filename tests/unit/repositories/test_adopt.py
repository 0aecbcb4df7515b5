"""Storages of a lost catalog are taken in where they are, and told of where they are not."""

import pytest

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.repositories.adopt import adopt_known, adopt_named
from pkgrepo.storage.catalog import storages
from pkgrepo.storage.known import KnownStorage
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


def listed(catalog):
    return [(each.uid, each.name, each.settings["path"]) for each in catalog.look(storages.list_storages)]


def test_what_is_where_it_was_comes_back(catalog, tmp_path):
    known = [
        KnownStorage(uid="id-a", name="a", path=str(make_store(tmp_path / "a", "id-a"))),
        KnownStorage(uid="id-b", name="b", path=str(make_store(tmp_path / "b", "somebody-elses"))),
        KnownStorage(uid="id-c", name="c", path=str(tmp_path / "c")),
    ]
    for _ in range(2):
        problems = catalog.do(adopt_known, known, NOW)
        assert [each.split("'")[1] for each in problems] == ["b", "c"]
        assert listed(catalog) == [("id-a", "a", str(tmp_path / "a"))]


def test_a_name_that_was_taken_since_is_told(catalog, tmp_path):
    known = [KnownStorage(uid="id-a", name="A", path=str(make_store(tmp_path / "a", "id-a")))]
    catalog.do(storages.add_storage, name="a", kind="Local", settings={"path": "/"}, now_ms=NOW, uid="new")
    (problem,) = catalog.do(adopt_known, known, NOW)
    assert f"--storage OTHER-NAME={tmp_path / 'a'}" in problem
    catalog.do(adopt_named, {"older": tmp_path / "a"}, NOW)
    assert catalog.do(adopt_known, known, NOW) == []
    assert [uid for uid, _, _ in listed(catalog)] == ["new", "id-a"]


def test_a_folder_that_is_named_is_taken_in_once(catalog, tmp_path):
    folder = make_store(tmp_path / "a", "id-a")
    for _ in range(2):
        catalog.do(adopt_named, {"a": folder}, NOW)
    assert listed(catalog) == [("id-a", "a", str(folder))]
    with pytest.raises(Conflict, match="has the storage 'a'"):
        catalog.do(adopt_named, {"b": folder}, NOW)
    with pytest.raises(Conflict, match="cannot be called 'a'"):
        catalog.do(adopt_named, {"a": make_store(tmp_path / "other", "id-o")}, NOW)
    with pytest.raises(Invalid, match="holds no storage"):
        catalog.do(adopt_named, {"c": tmp_path / "nothing"}, NOW)
