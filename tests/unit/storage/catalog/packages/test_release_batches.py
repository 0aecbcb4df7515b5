"""Batches of packages, versions and files: what is found and added is the same as one by one, in any number."""

import pytest

from pkgrepo.model import Actor, NewFile
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files, packages, release_batches
from pkgrepo.storage.catalog.packages.release_batches import NewPackage, NewVersion, PlacedFile
from pkgrepo.storage.catalog.rows import BATCH, to_ms
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

ALICE = Actor(1, "alice")
MANY = 2 * BATCH + 1


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    return catalog


def add_packages(catalog, *keys, now_ms=NOW):
    new = [NewPackage(key, key.upper(), number, {"n": number}) for number, key in enumerate(keys, 5)]
    added = catalog.do(release_batches.add_packages, catalog.repository.id, new, now_ms)
    assert added == catalog.peek(release_batches.find_packages, catalog.repository.id, keys)
    return added


def add_versions(catalog, package, *keys):
    new = [NewVersion(package.id, key, f"v{key}", key.encode(), {"k": key}) for key in keys]
    added = catalog.do(release_batches.add_versions, new, ALICE, NOW)
    assert added == catalog.peek(release_batches.find_versions, [(package.id, key) for key in keys])
    return added


def add_files(catalog, version, *paths):
    def command(tx):
        storage_id = catalog.repository.storage_id
        contents = [make_blob(path.encode(), md5="0" * 32) for path in paths]
        claimed = blobs.claim_blobs(tx, storage_id, contents, NOW)
        placed = [
            PlacedFile(NewFile(path, blob, "text/x", {"path": (path,)}), version.package_id, version.id)
            for path, blob in zip(paths, claimed, strict=True)
        ]
        return release_batches.add_files(tx, catalog.repository.id, storage_id, placed, NOW)

    return catalog.do(command)


def test_packages_are_added_with_their_values(catalog):
    keys = [f"p{number:03}" for number in range(MANY)]
    found = add_packages(catalog, *keys)
    assert list(found) == keys
    last = found[keys[-1]]
    assert (last.name, last.serial, last.meta) == (keys[-1].upper(), 5 + MANY - 1, {"n": 5 + MANY - 1})
    assert last.modified_s == NOW // 1000
    assert last == catalog.peek(packages.find_package, catalog.repository.id, keys[-1])
    assert catalog.peek(release_batches.find_packages, catalog.repository.id, ["none"]) == {}
    assert catalog.peek(release_batches.find_packages, catalog.repository.id + 1, keys) == {}


def test_a_package_that_comes_back_is_changed_later_than_it_was_removed_and_not_retired(catalog):
    version = add_versions(catalog, add_packages(catalog, "old")["old"], "1")
    file = add_files(catalog, next(iter(version.values())), "old/1")["old/1"]
    later = NOW + 90_000
    catalog.do(files.remove_file, file, actor=ALICE, tombstone=True, now_ms=later)
    catalog.do(packages.remove_package, file.package_id)
    assert [each.key for each in catalog.peek(packages.list_retired, catalog.repository.id)] == ["old"]
    found = add_packages(catalog, "new", "old")
    assert (found["old"].modified_s, found["new"].modified_s) == (later // 1000 + 1, NOW // 1000)
    assert catalog.peek(packages.list_retired, catalog.repository.id) == []


def test_versions_are_found_by_package_and_key(catalog):
    first, second = add_packages(catalog, "a", "b").values()
    keys = [f"{number:03}" for number in range(MANY)]
    of_first = add_versions(catalog, first, *keys)
    of_second = add_versions(catalog, second, "000")
    assert [key for _, key in of_first] == keys
    assert of_first[first.id, "000"].id != of_second[second.id, "000"].id
    found = of_first[first.id, keys[-1]]
    assert (found.text, found.sort, found.meta, found.publisher) == (
        f"v{keys[-1]}",
        keys[-1].encode(),
        {"k": keys[-1]},
        "alice",
    )
    assert catalog.peek(release_batches.find_versions, [(second.id, "001")]) == {}


def test_a_package_is_as_old_as_the_oldest_of_its_versions(catalog):
    one, two = add_packages(catalog, "one", "two").values()
    texts = {"1.0": NOW - 5000, "2.0": NOW - 9000, "3.0": NOW + 1000, "4.0": None}
    new = [NewVersion(one.id, key, key, key.encode(), {}, at_ms) for key, at_ms in texts.items()]
    catalog.do(release_batches.add_versions, [*new, NewVersion(two.id, "1.0", "1.0", b"1", {}, NOW + 1)], ALICE, NOW)
    found = [catalog.peek(packages.find_package, catalog.repository.id, each) for each in ("one", "two")]
    assert [to_ms(each.created_at) - NOW for each in found] == [-9000, 0]
    assert {to_ms(each.updated_at) for each in found} == {NOW}


def test_files_are_added_and_found_as_one_by_one(catalog):
    version = next(iter(add_versions(catalog, add_packages(catalog, "a")["a"], "1").values()))
    paths = [f"a/{number:03}" for number in range(MANY)]
    added = add_files(catalog, version, *paths)
    assert list(added) == paths
    assert added == catalog.peek(release_batches.find_files, catalog.repository.id, paths)
    one = added[paths[-1]]
    assert one == catalog.peek(files.find_file, catalog.repository.id, paths[-1])
    assert (one.attrs, one.digests["md5"], one.media_type) == ({"path": [paths[-1]]}, "0" * 32, "text/x")
    assert catalog.peek(release_batches.paths_with_files, catalog.repository.id, [*paths[:3], "b"]) == set(paths[:3])


def test_tombstones_are_found_and_removed_by_path(catalog):
    version = next(iter(add_versions(catalog, add_packages(catalog, "a")["a"], "1").values()))
    for file in add_files(catalog, version, "a/1", "a/2").values():
        catalog.do(files.remove_file, file, actor=ALICE, tombstone=True, now_ms=NOW)
    where = catalog.repository.id
    assert catalog.peek(release_batches.paths_with_tombstones, where, ["a/1", "a/2", "a/3"]) == {"a/1", "a/2"}
    catalog.do(release_batches.remove_tombstones, where, {"a/1", "a/3"})
    assert catalog.peek(release_batches.paths_with_tombstones, where, ["a/1", "a/2", "a/3"]) == {"a/2"}
    catalog.do(release_batches.remove_tombstones, where, set())


def test_the_statements_do_not_grow_with_the_files(catalog):
    version = next(iter(add_versions(catalog, add_packages(catalog, "a")["a"], "1").values()))
    add_files(catalog, version, *(f"b/{number}" for number in range(BATCH)))
    before = catalog.tx.statements
    add_files(catalog, version, *(f"a/{number}" for number in range(BATCH)))
    assert catalog.tx.statements - before == 2  # reads: the blobs, and the ids of the files
