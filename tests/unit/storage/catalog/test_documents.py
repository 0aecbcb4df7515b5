import pytest

from pkgrepo.model import Document
from pkgrepo.storage.catalog import documents, packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def find(catalog, kind, key):
    return catalog.look(documents.find_document, catalog.repository.id, kind, key)


def put(catalog, kind, key, document):
    catalog.do(documents.put_document, catalog.repository.id, kind, key, document, NOW)


def test_a_document_comes_back_with_its_forms(catalog):
    document = Document("text/html", b"<p>" * 1000, '"e"', 3, gzip=b"gz", zstd=b"zs")
    put(catalog, "simple", "demo", document)
    assert find(catalog, "simple", "demo") == document
    assert catalog.look(documents.document_etag, catalog.repository.id, "simple", "demo") == ('"e"', 3)
    assert find(catalog, "other", "demo") is find(catalog, "simple", "other") is None
    assert catalog.look(documents.document_etag, 99, "simple", "demo") is None


def test_a_new_document_replaces_every_form_of_the_old(catalog):
    put(catalog, "simple", "demo", Document("text/html", b"long", '"1"', 1, gzip=b"gz", zstd=b"zs"))
    small = Document("application/json", b"{}", '"2"', 2)
    put(catalog, "simple", "demo", small)
    assert find(catalog, "simple", "demo") == small


def test_documents_go_one_by_one_or_all_of_a_key(catalog):
    document = Document("text/html", b"x", '"1"', 1)
    for kind, key in every_pair():
        put(catalog, kind, key, document)
    catalog.do(documents.remove_document, catalog.repository.id, "html", "a")
    assert (find(catalog, "html", "a"), find(catalog, "json", "a")) == (None, document)
    catalog.do(documents.remove_documents, catalog.repository.id, "b")
    assert find(catalog, "html", "b") is find(catalog, "json", "b") is None
    assert find(catalog, "json", "a") == document


def every_pair():
    return [(kind, key) for kind in ("html", "json") for key in ("a", "b")]


def test_fragments_are_read_in_their_order(catalog):
    package, _ = catalog.do(
        packages.ensure_package, catalog.repository.id, key="demo", name="demo", serial=0, now_ms=NOW
    )
    for sort, key, body in ((b"\x02", "a", b"3"), (b"\x01", "b", b"2"), (b"\x01", "a", b"old"), (b"\xff", "z", b"4")):
        catalog.do(documents.put_fragment, package.id, "html", sort, key, body)
    catalog.do(documents.put_fragment, package.id, "html", b"\x01", "a", b"1")
    catalog.do(documents.put_fragment, package.id, "json", b"\x01", "a", b"other")
    assert catalog.look(documents.read_fragments, package.id, "html") == [b"1", b"2", b"3", b"4"]
    catalog.do(documents.remove_fragment, package.id, "html", b"\x01", "b")
    catalog.do(documents.remove_fragment, package.id, "html", b"\x01", "absent")
    assert catalog.look(documents.read_fragments, package.id, "html") == [b"1", b"3", b"4"]
    catalog.do(packages.remove_package, package.id)
    assert catalog.look(documents.read_fragments, package.id, "html") == []
