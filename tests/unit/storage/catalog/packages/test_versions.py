import pytest

from pkgrepo.model import SYSTEM, Actor, VersionState
from pkgrepo.storage.catalog.packages import files, packages, versions
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version, publish


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    catalog.package, _ = catalog.do(
        packages.ensure_package, catalog.repository.id, key="demo", name="demo", serial=0, now_ms=NOW
    )
    return catalog


def ensure(catalog, key, sort=None, **how):
    how = {"text": key, "meta": {}, "publisher": SYSTEM, "now_ms": NOW, **how}
    return catalog.do(ensure_version, catalog.package.id, key=key, sort=sort or key.encode(), **how)


def listed(catalog):
    return [each.key for each in catalog.peek(versions.list_versions, catalog.package.id)]


def test_a_version_is_added_once_and_keeps_what_it_has(catalog):
    version, added = ensure(catalog, "1", b"\x00\xff", text="1.0", meta={"x": [1]}, publisher=Actor(3, "alice"))
    assert added
    assert (version.key, version.text, version.sort, version.meta) == ("1", "1.0", b"\x00\xff", {"x": [1]})
    assert (version.state, version.reason, version.publisher) == (VersionState.LIVE, "", "alice")
    assert ensure(catalog, "1", meta={"other": 1}) == (version, False)
    assert catalog.peek(versions.find_version, catalog.package.id, "1") == version
    assert catalog.peek(versions.find_version, catalog.package.id, "2") is None


def test_versions_are_ordered_by_their_sort_bytes(catalog):
    for key, sort in (("10", b"\x0a"), ("9", b"\x09"), ("255", b"\xff"), ("1", b"\x01")):
        ensure(catalog, key, sort, text=f"v{key}")
    assert listed(catalog) == ["1", "9", "10", "255"]
    ensure(catalog, "0", b"\x09")
    assert listed(catalog) == ["1", "0", "9", "10", "255"]
    assert catalog.peek(versions.version_keys, catalog.package.id) == ["1", "0", "9", "10", "255"]
    assert catalog.peek(versions.version_texts, catalog.package.id) == ["v1", "0", "v9", "v10", "v255"]


def test_state_and_meta_change(catalog):
    version, _ = ensure(catalog, "1")
    catalog.do(versions.set_state, version.id, VersionState.YANKED, "broken")
    catalog.do(versions.set_meta, version.id, {"a": "b"})
    version = catalog.peek(versions.find_version, catalog.package.id, "1")
    assert (version.state, version.reason, version.meta) == (VersionState.YANKED, "broken", {"a": "b"})


def test_removing_a_version_removes_its_files(catalog):
    catalog.do(publish, catalog.repository, "a/1", version="1")
    catalog.do(publish, catalog.repository, "a/2", version="2")
    first = catalog.peek(versions.find_version, catalog.package.id, "1")
    catalog.do(versions.remove_version, first.id)
    assert [file.path for file in catalog.peek(files.files_of_package, catalog.package.id)] == ["a/2"]
