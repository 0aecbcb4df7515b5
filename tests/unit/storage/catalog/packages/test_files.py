from functools import partial

import pytest
from attrs import evolve

from pkgrepo.errors import FileBurned, FileExists
from pkgrepo.model import Actor, NewFile
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob, publish

ALICE = Actor(1, "alice")


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def put(catalog, path, content, how=files.add_file, **attrs):
    def command(tx):
        blob = blobs.claim_blob(tx, catalog.repository.storage_id, make_blob(content, md5="0" * 32), NOW)
        new = NewFile(path=path, blob=blob, media_type="text/x", attrs=attrs)
        return how(tx, catalog.repository.id, catalog.repository.storage_id, new, None, None, NOW)

    return catalog.do(command)


def find(catalog, path):
    return catalog.peek(files.find_file, catalog.repository.id, path)


def test_a_file_is_found_with_the_data_of_its_blob(catalog):
    file = put(catalog, "a/b.whl", b"bytes", tag="py3")
    blob = make_blob(b"bytes", md5="0" * 32)
    assert (file.path, file.size, file.sha256, file.locator) == ("a/b.whl", 5, blob.sha256, blob.locator)
    assert file.digests == {"sha256": blob.sha256, "md5": "0" * 32}
    assert (file.media_type, file.attrs, file.package_id) == ("text/x", {"tag": "py3"}, None)
    assert file.created_at.timestamp() * 1000 == NOW
    assert find(catalog, "a/b.whl") == file
    assert find(catalog, "a/B.whl") is None
    assert catalog.peek(files.find_file, 99, "a/b.whl") is None


def test_the_same_content_again_is_the_same_file(catalog):
    assert put(catalog, "a", b"x", first=True) == put(catalog, "a", b"x", first=False)


def test_other_content_at_a_path_raises_file_exists(catalog):
    stored = put(catalog, "dir/a", b"x")
    with pytest.raises(FileExists) as caught:
        put(catalog, "dir/a", b"y")
    assert (caught.value.filename, caught.value.stored_sha256) == ("a", stored.sha256)
    assert find(catalog, "dir/a") == stored


def test_a_replacement_has_the_same_path_and_id(catalog):
    before = put(catalog, "a", b"x", first=True)
    after = put(catalog, "a", b"yy", files.replace_file, first=False)
    assert (after.id, after.sha256, after.size) == (before.id, make_blob(b"yy").sha256, 2)
    assert find(catalog, "a") == after
    assert put(catalog, "new", b"z", files.replace_file).size == 1


def test_a_path_with_a_tombstone_is_reused_only_on_request(catalog):
    file = put(catalog, "dir/a", b"x")
    catalog.do(files.remove_file, file, actor=ALICE, tombstone=True, now_ms=NOW)
    assert find(catalog, "dir/a") is None
    for how in (files.add_file, files.replace_file):
        for content in (b"x", b"y"):
            with pytest.raises(FileBurned) as caught:
                put(catalog, "dir/a", content, how)
            assert caught.value.filename == "a"
    for how in (files.add_file, files.replace_file):
        again = put(catalog, "dir/a", b"y", partial(how, reuse=True))
        catalog.do(files.remove_file, again, actor=ALICE, tombstone=True, now_ms=NOW)
    with pytest.raises(FileBurned):
        put(catalog, "dir/a", b"x")


def test_a_path_can_get_a_tombstone_again(catalog):
    for _ in range(2):
        file = put(catalog, "a", b"x", partial(files.add_file, reuse=True))
        catalog.do(files.remove_file, file, actor=ALICE, tombstone=True, now_ms=NOW)
        assert find(catalog, "a") is None
        with pytest.raises(FileBurned):
            put(catalog, "a", b"x")


def test_a_path_without_tombstone_can_be_published_again(catalog):
    catalog.do(files.remove_file, put(catalog, "a", b"x"), actor=ALICE, tombstone=False, now_ms=NOW)
    assert put(catalog, "a", b"y").sha256 == make_blob(b"y").sha256


def test_files_are_listed_by_version_and_by_package(catalog):
    first = catalog.do(publish, catalog.repository, "b", version="1")
    second = catalog.do(publish, catalog.repository, "a", version="1")
    third = catalog.do(publish, catalog.repository, "c", version="2")
    catalog.do(publish, catalog.repository, "d", package="other")
    assert catalog.peek(files.files_of_version, first.version_id) == [second, first]
    assert catalog.peek(files.files_of_package, first.package_id) == [second, first, third]


def test_a_suspect_blob_has_no_locator_until_it_is_uploaded_again(catalog):
    file = put(catalog, "a", b"x")
    catalog.do(blobs.mark_suspect, file.storage_id, file.sha256, file.locator)
    assert find(catalog, "a") == evolve(file, locator="")
    fresh = make_blob(b"x", copy=2)
    catalog.do(blobs.claim_blob, file.storage_id, fresh, NOW)
    assert find(catalog, "a").locator == fresh.locator
