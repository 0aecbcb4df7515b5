import pytest

from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.files import Tombstone, restore_tombstone
from pkgrepo.storage.catalog.rows import at
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def ensure(catalog, key, name=None):
    return catalog.do(packages.ensure_package, catalog.repository.id, key=key, name=name or key, serial=7, now_ms=NOW)


def page(catalog, **how):
    return [each.key for each in catalog.peek(packages.list_packages, catalog.repository.id, **how)]


def test_a_package_is_added_once(catalog):
    package, added = ensure(catalog, "foo-bar", "Foo.Bar")
    assert added
    assert (package.key, package.name, package.serial, package.latest, package.meta) == (
        "foo-bar",
        "Foo.Bar",
        7,
        None,
        {},
    )
    assert ensure(catalog, "foo-bar", "foo_bar") == (package, False)
    assert catalog.peek(packages.find_package, catalog.repository.id, "foo-bar") == package
    assert catalog.peek(packages.find_package, 99, "foo-bar") is None


def test_touch_changes_only_the_given_columns(catalog):
    package, _ = ensure(catalog, "foo")
    catalog.do(packages.touch_package, package.id, serial=8, now_ms=NOW + 1, name="Foo", latest="1.0", meta={"a": 1})
    catalog.do(packages.touch_package, package.id, serial=9, now_ms=NOW + 2)
    package = catalog.peek(packages.find_package, catalog.repository.id, "foo")
    assert (package.name, package.latest, package.meta, package.serial) == ("Foo", "1.0", {"a": 1}, 9)
    assert package.updated_at.timestamp() * 1000 == NOW + 2


def touch(catalog, package, serial, now_ms):
    catalog.do(packages.touch_package, package.id, serial=serial, now_ms=now_ms)
    return catalog.peek(packages.find_package, catalog.repository.id, package.key).modified_s


def test_each_serial_gets_a_later_modification_second(catalog):
    package, _ = ensure(catalog, "foo")
    second = NOW // 1000
    assert touch(catalog, package, 8, NOW) == second
    assert touch(catalog, package, 8, NOW) == second  # the same change
    assert touch(catalog, package, 9, NOW + 1) == second + 1
    assert touch(catalog, package, 10, NOW - 60_000) == second + 2  # the clock was set back
    assert touch(catalog, package, 11, NOW + 60_000) == second + 60


def test_a_package_added_again_is_modified_later_than_its_removal(catalog):
    package, _ = ensure(catalog, "foo")
    catalog.do(packages.remove_package, package.id)
    gone = Tombstone(path="foo/1.tgz", package_key="foo", sha256="00" * 32, deleted_at=at(NOW), actor="alice")
    catalog.do(restore_tombstone, catalog.repository.id, gone)
    again, _ = ensure(catalog, "foo")
    assert touch(catalog, again, 8, NOW) == NOW // 1000 + 1


def test_pages_contain_each_package_once(catalog):
    keys = sorted(f"p{n}" for n in range(23))
    for key in keys:
        ensure(catalog, key)
    seen, after = [], ""
    while found := page(catalog, after=after, limit=5):
        seen += found
        after = found[-1]
    assert seen == keys


def test_all_names_are_listed_by_key(catalog):
    ensure(catalog, "b", "B")
    ensure(catalog, "a", "A")
    assert catalog.peek(packages.package_names, catalog.repository.id) == [("a", "A"), ("b", "B")]
