import pytest

from pkgrepo.storage.catalog import packages
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
    return [each.key for each in catalog.look(packages.list_packages, catalog.repository.id, **how)]


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
    assert catalog.look(packages.find_package, catalog.repository.id, "foo-bar") == package
    assert catalog.look(packages.find_package, 99, "foo-bar") is None


def test_a_touch_changes_what_it_names(catalog):
    package, _ = ensure(catalog, "foo")
    catalog.do(packages.touch_package, package.id, serial=8, now_ms=NOW + 1, name="Foo", latest="1.0", meta={"a": 1})
    catalog.do(packages.touch_package, package.id, serial=9, now_ms=NOW + 2)
    package = catalog.look(packages.find_package, catalog.repository.id, "foo")
    assert (package.name, package.latest, package.meta, package.serial) == ("Foo", "1.0", {"a": 1}, 9)
    assert package.updated_at.timestamp() * 1000 == NOW + 2


def test_pages_join_without_gap_or_repetition(catalog):
    keys = sorted(f"p{n}" for n in range(23))
    for key in keys:
        ensure(catalog, key)
    seen, after = [], ""
    while found := page(catalog, after=after, limit=5):
        seen += found
        after = found[-1]
    assert seen == keys


def test_a_query_is_looked_for_literally(catalog):
    for key in ("a_b", "axb", "a-b", "100%"):
        ensure(catalog, key)
    assert page(catalog, query="A_B") == ["a_b"]
    assert page(catalog, query="%") == ["100%"]
    assert page(catalog, query="b", after="a-b") == ["a_b", "axb"]


def test_names_are_listed_whole_by_key(catalog):
    ensure(catalog, "b", "B")
    ensure(catalog, "a", "A")
    assert catalog.look(packages.package_names, catalog.repository.id) == [("a", "A"), ("b", "B")]
