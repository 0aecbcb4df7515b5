import pytest

from pkgrepo.model import Actor
from pkgrepo.storage.catalog.packages import tags, versions
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, publish

ALICE = Actor(1, "alice")


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.file = catalog.do(publish, catalog.do(add_repository), "a")
    return catalog


def put(catalog, name, **what):
    catalog.do(tags.set_tag, catalog.file.package_id, name, actor=ALICE, now_ms=NOW, **what)


def test_a_tag_moves(catalog):
    put(catalog, "latest", version_id=catalog.file.version_id)
    put(catalog, "latest", digest="sha256:aa")
    tag = catalog.peek(tags.find_tag, catalog.file.package_id, "latest")
    assert (tag.version_id, tag.digest, tag.actor) == (None, "sha256:aa", "alice")
    assert catalog.peek(tags.find_tag, catalog.file.package_id, "other") is None


def test_tags_are_listed_in_pages(catalog):
    names = sorted(f"t{n}" for n in range(12))
    for name in names:
        put(catalog, name, digest=name)
    seen, after = [], ""
    while page := catalog.peek(tags.list_tags, catalog.file.package_id, after=after, limit=5):
        seen += [tag.name for tag in page]
        after = page[-1].name
    assert seen == names


def test_a_removed_tag_is_gone(catalog):
    put(catalog, "latest", digest="x")
    assert catalog.do(tags.remove_tag, catalog.file.package_id, "latest")
    assert not catalog.do(tags.remove_tag, catalog.file.package_id, "latest")


def test_removing_a_version_removes_its_tags(catalog):
    put(catalog, "latest", version_id=catalog.file.version_id)
    catalog.do(versions.remove_version, catalog.file.version_id)
    assert catalog.peek(tags.list_tags, catalog.file.package_id) == []
