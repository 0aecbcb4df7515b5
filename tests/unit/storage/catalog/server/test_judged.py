"""What rules were found to hide, for lists over all packages."""

import pytest

from pkgrepo.storage.catalog.server import judged
from tests.support.catalog import MemoryCatalog
from tests.support.quota_walk import add_two_repositories


def test_what_is_noted_of_a_package_is_replaced_and_numbered_anew():
    catalog = MemoryCatalog()
    first, second = catalog.do(add_two_repositories)
    assert catalog.peek(judged.judged_serial, first.id) == 0
    catalog.do(judged.put_judged, first.id, "left", "s", {"1.0": None})
    before = catalog.peek(judged.judged_serial, first.id)
    catalog.do(judged.put_judged, first.id, "left", "s", {"1.0": None, "2.0": 5})
    catalog.do(judged.put_judged, first.id, "left", "t", {})
    assert catalog.peek(judged.find_judged, first.id, "left", "s") == {"1.0": None, "2.0": 5}
    assert catalog.peek(judged.find_judged, first.id, "left", "t") == {}
    assert catalog.peek(judged.find_judged, second.id, "left", "s") is None
    assert [each.stamp for each in catalog.peek(judged.list_judged, first.id)] == ["s", "t"]
    assert catalog.peek(judged.judged_serial, first.id) > before > 0
    assert catalog.peek(judged.judged_serial, second.id) == 0


def test_nothing_is_noted_of_a_repository_that_is_gone():
    catalog = MemoryCatalog()
    catalog.do(judged.put_judged, 17, "left", "s", {"1.0": None})
    assert catalog.peek(judged.list_judged, 17) == []


def test_of_too_many_packages_the_oldest_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judged, "MOST", 2)
    catalog = MemoryCatalog()
    first, second = catalog.do(add_two_repositories)
    catalog.do(judged.put_judged, second.id, "of-another", "s", {})
    for name in ("a", "b", "a", "c"):
        catalog.do(judged.put_judged, first.id, name, "s", {})
    assert [each.package_key for each in catalog.peek(judged.list_judged, first.id)] == ["a", "c"]
    assert len(catalog.peek(judged.list_judged, second.id)) == 1
