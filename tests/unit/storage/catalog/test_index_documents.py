import pytest

from pkgrepo.model import Fragment
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def test_fragments_are_read_in_their_order(catalog):
    package, _ = catalog.do(
        packages.ensure_package, catalog.repository.id, key="demo", name="demo", serial=0, now_ms=NOW
    )
    for sort, key, body in ((b"\x02", "a", b"3"), (b"\x01", "b", b"2"), (b"\x01", "a", b"old"), (b"\xff", "z", b"4")):
        catalog.do(index_documents.put_fragment, package.id, "html", sort, key, body)
    catalog.do(index_documents.put_fragment, package.id, "html", b"\x01", "a", b"1")
    catalog.do(index_documents.put_fragment, package.id, "json", b"\x01", "a", b"other")
    assert [each.body for each in catalog.peek(index_documents.list_fragments, package.id, "html")] == [
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    catalog.do(index_documents.remove_fragment, package.id, "html", b"\x01", "b")
    catalog.do(index_documents.remove_fragment, package.id, "html", b"\x01", "absent")
    assert [each.body for each in catalog.peek(index_documents.list_fragments, package.id, "html")] == [
        b"1",
        b"3",
        b"4",
    ]
    catalog.do(packages.remove_package, package.id)
    assert [each.body for each in catalog.peek(index_documents.list_fragments, package.id, "html")] == []


def test_fragments_of_a_package_lie_side_by_side(catalog):
    ids = [
        catalog.do(packages.ensure_package, catalog.repository.id, key=key, name=key, serial=0, now_ms=NOW)[0].id
        for key in ("first", "second")
    ]
    for number in range(3):  # in turns, as packages are published
        for package_id in ids:
            new = [(kind, Fragment(b"", f"{number}", b"body")) for kind in ("full", "short")]
            catalog.do(index_documents.put_fragments, package_id, new)
            catalog.do(index_documents.put_fragments, package_id, new[:1])  # which keeps its row
        catalog.do(index_documents.remove_fragment, ids[0], "short", b"", f"{number}")
    rows = catalog.peek(lambda r: r.all("SELECT package_id, rowid - (package_id << 32) FROM fragment ORDER BY rowid"))
    assert rows == [*((ids[0], place) for place in (1, 2, 3)), *((ids[1], place) for place in (1, 2, 3, 4, 5, 6))]
