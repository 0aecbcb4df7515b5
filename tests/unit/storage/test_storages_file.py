"""The file storages.json."""

from pkgrepo.storage.storages_file import STORAGES_JSON, StorageEntry, StoragesFile

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
