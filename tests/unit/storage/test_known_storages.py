"""Where storages are is known without the database."""

from pkgrepo.storage.known_storages import NAME, KnownStorage, KnownStorages

MAIN = KnownStorage(uid="1", name="main", path="/a")
OTHER = KnownStorage(uid="2", name="ä", path="/b\udcff".encode("utf-8", "replace").decode())


def test_what_was_remembered_is_known_until_it_is_forgotten(tmp_path):
    known = KnownStorages(tmp_path)
    assert known.list() == []
    known.remember(OTHER)
    known.remember(MAIN)
    assert KnownStorages(tmp_path).list() == [MAIN, OTHER]
    renamed = KnownStorage(uid="1", name="first", path="/c")
    known.remember(renamed)
    assert known.list() == [renamed, OTHER]
    known.forget("1")
    known.forget("never was")
    assert known.list() == [OTHER]
    assert [each.name for each in tmp_path.iterdir()] == [NAME]


def test_nothing_is_written_when_nothing_changes(tmp_path):
    known = KnownStorages(tmp_path)
    known.remember(MAIN)
    before = (tmp_path / NAME).stat()
    known.remember(MAIN)
    assert (tmp_path / NAME).stat() == before


def test_a_damaged_file_is_begun_anew(tmp_path):
    (tmp_path / NAME).write_bytes(b"[{]")
    known = KnownStorages(tmp_path)
    assert known.list() == []
    known.remember(MAIN)
    assert known.list() == [MAIN]
