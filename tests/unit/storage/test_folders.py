"""Paths of storages relative to the data folder, and owners of storage folders."""

import shutil

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.storage import folders
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.blobs.paths import StorePaths
from pkgrepo.storage.folders import OWNER, STORAGES_JSON, StorageEntry, StorageFolders, StoragesFile
from tests.support.data_folder import tree

DURABILITY = Durability("never")


@pytest.fixture
def data(tmp_path):
    """A data folder with a catalog."""
    return make_data(tmp_path / "data")


def make_data(folder):
    folder.mkdir()
    (folder / "pkgrepo.db").touch()
    return folder


def folders_of(data, catalog="one"):
    return StorageFolders(data, catalog, DURABILITY)


def make_store(folder, uid="id"):
    StorePaths(folder).prepare(DURABILITY, uid)
    return folder


def test_paths_below_the_data_folder_are_kept_relative_to_it(tmp_path, data):
    folders = folders_of(data)
    (tmp_path / "link").symlink_to(data)
    for given, kept in (
        (data / "storages" / "main", "storages/main"),
        ("storages/main", "storages/main"),
        (data / "x" / ".." / "main", "main"),
        (tmp_path / "link" / "main", "main"),
        (tmp_path / "far", str(tmp_path / "far")),
        ("../far", str(tmp_path / "far")),
    ):
        assert folders.spell(given) == kept
    assert folders.locate("storages/main") == data / "storages" / "main"
    assert folders.locate(str(tmp_path / "far")) == tmp_path / "far"
    assert folders_of(tmp_path / "link").spell(data / "main") == "main"


@pytest.mark.parametrize("marked", [False, True])
def test_a_storage_in_the_data_folder_belongs_to_its_catalog(tmp_path, data, marked):
    store = make_store(data / "storages" / "main")
    if marked:
        folders_of(data).claim(store)
    shutil.copytree(data, tmp_path / "copy")
    folders_of(tmp_path / "copy").check("main", "id", tmp_path / "copy" / "storages" / "main")


def test_a_storage_elsewhere_belongs_to_one_data_folder(tmp_path, data):
    far = make_store(tmp_path / "far")
    folders_of(data).check("far", "id", far)  # of a catalog from before owners were written down
    folders_of(data).claim(far)
    before = tree(far)
    copy = folders_of(make_data(tmp_path / "copy"))
    with pytest.raises(Conflict) as refused:
        copy.check("far", "id", far)
    for part in (f"{far} belongs to the catalog in {data}:", "storage move far PATH", "storage adopt far"):
        assert part in str(refused.value)
    with pytest.raises(Conflict):
        copy.make("far", far)
    with pytest.raises(Conflict):
        folders_of(data, "two").check("far", "id", far)
    assert tree(far) == before
    folders_of(data).check("far", "id", far)
    copy.claim(far)
    copy.check("far", "id", far)
    with pytest.raises(Conflict):
        folders_of(data).check("far", "id", far)


@pytest.mark.parametrize("marked", [False, True])
def test_a_storage_in_another_data_folder_belongs_to_that_one(tmp_path, data, marked):
    store = make_store(data / "storages" / "main")
    if marked:
        folders_of(data).claim(store)
    for name in ("pkgrepo.db", "storages.json"):
        for each in data.glob("*.*"):
            each.unlink()
        (data / name).touch()
        with pytest.raises(Conflict, match=f"belongs to the catalog in {data}:"):
            folders_of(make_data(tmp_path / name)).check("main", "id", store)


def test_a_link_in_the_data_folder_does_not_make_a_storage_part_of_it(tmp_path, data):
    make_store(tmp_path / "far")
    (data / "far").symlink_to(tmp_path / "far")
    folders_of(data).claim(data / "far")
    shutil.copytree(data, tmp_path / "copy", symlinks=True)
    with pytest.raises(Conflict, match="belongs to"):
        folders_of(tmp_path / "copy").check("far", "id", tmp_path / "copy" / "far")


def test_a_storage_of_a_lost_catalog_is_reported_as_such(data):
    store = make_store(data / "storages" / "main")
    folders_of(data).claim(store)
    with pytest.raises(Conflict, match="belongs to an earlier catalog: 'pkgrepo reindex'"):
        folders_of(data, "two").check("main", "id", store)
    with pytest.raises(Conflict):
        folders_of(data, "two").make("main", store)
    folders_of(data, "two").take_over("main", store)
    folders_of(data, "two").check("main", "id", store)


def test_only_storages_of_lost_catalogs_are_taken_over(tmp_path, data):
    far = make_store(tmp_path / "far")
    folders_of(data).claim(far)
    other = folders_of(make_data(tmp_path / "other"), "two")
    with pytest.raises(Conflict, match="belongs to the catalog in"):
        other.take_over("far", far)
    folders_of(data, "new").take_over("far", far)  # the same data folder, whose database was lost
    shutil.rmtree(data)
    other.take_over("far", far)
    other.check("far", "id", far)


def test_a_missing_storage_is_reported_and_not_created(tmp_path, data):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "gone", tmp_path / "empty"):
        with pytest.raises(Conflict, match="nothing is made there"):
            folders_of(data).check("far", "id", folder)
    make_store(tmp_path / "other", "another")
    with pytest.raises(Conflict, match="belongs to storage another, not to id"):
        folders_of(data).check("far", "id", tmp_path / "other")
    assert tree(tmp_path / "empty") == {}
    assert not (tmp_path / "gone").exists()
    assert not (tmp_path / "other" / OWNER).exists()


def test_a_new_storage_belongs_to_the_catalog_at_once(tmp_path, data):
    folders = folders_of(data)
    uid = folders.make("far", tmp_path / "far")
    assert folders.make("far", tmp_path / "far") == uid  # after a crash before the catalog knew it
    with pytest.raises(Conflict):
        folders_of(make_data(tmp_path / "other")).check("far", uid, tmp_path / "far")
    with pytest.raises(Conflict, match="belongs to storage"):
        folders.make("more", tmp_path / "far", "another")


def test_an_owner_is_written_only_when_it_changes(data):
    store = make_store(data / "main")
    folders_of(data).claim(store)
    before = (store / OWNER).stat()
    folders_of(data).claim(store)
    after = (store / OWNER).stat()  # without the time of the last read
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_a_damaged_owner_file_is_reported(data):
    store = make_store(data / "main")
    (store / OWNER).write_bytes(b"{")
    with pytest.raises(Conflict, match="is damaged; remove it"):
        folders_of(data).check("main", "id", store)


def node(data, database="postgresql:1/1"):
    return StorageFolders(data, "one", DURABILITY, home=database)


def test_a_shared_storage_belongs_to_all_nodes_of_its_database(tmp_path):
    store = make_store(tmp_path / "shared" / "main")
    node(tmp_path / "one").claim(store)
    node(tmp_path / "two").check("main", "id", store)
    with pytest.raises(Conflict, match="belongs to the catalog in postgresql:1/1"):
        node(tmp_path / "two", "postgresql:1/2").check("main", "id", store)
    with pytest.raises(Conflict, match="belongs to the catalog in postgresql:1/1"):
        folders_of(tmp_path / "one").check("main", "id", store)
    with pytest.raises(Conflict):
        node(tmp_path / "two", "postgresql:1/2").take_over("main", store)


def test_a_storage_that_another_node_claims_just_now_belongs_to_both(tmp_path, monkeypatch):
    store = make_store(tmp_path / "shared" / "main")
    read = folders._owner

    def read_before_the_other_claims(folder):
        monkeypatch.setattr(folders, "_owner", read)
        found = read(folder)
        node(tmp_path / "one").claim(store)
        return found

    monkeypatch.setattr(folders, "_owner", read_before_the_other_claims)
    node(tmp_path / "two").check("main", "id", store)


def test_a_catalog_that_was_copied_to_a_database_keeps_its_storages(tmp_path, data):
    store = make_store(tmp_path / "far")
    folders_of(data).claim(store)
    node(data).check("main", "id", store)
    with pytest.raises(Conflict, match="belongs to the catalog in"):
        node(tmp_path / "two").check("main", "id", store)
    node(data).claim(store)
    node(tmp_path / "two").check("main", "id", store)


def test_new_storages_are_below_the_folder_that_is_given_for_them(tmp_path, data):
    assert folders_of(data).locate_new("more") == data / "storages" / "more"
    shared = StorageFolders(data, "one", DURABILITY, new=tmp_path / "shared")
    assert shared.locate_new("more") == tmp_path / "shared" / "more"
    assert shared.spell(shared.locate_new("more")) == str(tmp_path / "shared" / "more")


MAIN = StorageEntry(uid="1", name="main", path="/a")
OTHER = StorageEntry(uid="2", name="ä", path="/b\udcff".encode("utf-8", "replace").decode())


def test_added_storages_are_listed_until_removed(tmp_path):
    known = StoragesFile(tmp_path)
    assert known.list() == []
    known.add(OTHER)
    known.add(MAIN)
    assert StoragesFile(tmp_path).list() == [MAIN, OTHER]
    renamed = StorageEntry(uid="1", name="first", path="/c")
    known.add(renamed)
    assert known.list() == [renamed, OTHER]
    known.remove("1")
    known.remove("never was")
    assert known.list() == [OTHER]
    assert [each.name for each in tmp_path.iterdir()] == [STORAGES_JSON]


def test_nothing_is_written_when_nothing_changes(tmp_path):
    known = StoragesFile(tmp_path)
    known.add(MAIN)
    before = (tmp_path / STORAGES_JSON).stat()
    known.add(MAIN)
    assert (tmp_path / STORAGES_JSON).stat() == before


def test_a_damaged_file_is_replaced(tmp_path):
    (tmp_path / STORAGES_JSON).write_bytes(b"[{]")
    known = StoragesFile(tmp_path)
    assert known.list() == []
    known.add(MAIN)
    assert known.list() == [MAIN]
