"""Uploads and garbage collections in every order: no file ever refers to bytes that were removed."""

import itertools

import pytest

from pkgrepo.model import NewFile
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.packages import files
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

LATER = NOW + 86_400_000


class Scene:
    """One blob in a catalog, and the locators of its copies in the blob store."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.storage_id = self.repository.storage_id
        self.copies: set[str] = set()
        self.sha256 = make_blob(b"x").sha256
        self.uploads = 0
        self.marked = []

    def publish(self) -> None:
        """One whole upload: store a copy, claim it in a transaction with a file, remove the copy if it is not used."""
        self.uploads += 1
        info = make_blob(b"x", copy=self.uploads)
        self.copies.add(info.locator)

        def command(tx):
            blob = blobs.claim_blob(tx, self.storage_id, info, LATER)
            new = NewFile(path=f"file {self.uploads}", blob=blob)
            files.add_file(tx, self.repository.id, self.storage_id, new, None, None, LATER)
            return blob

        if self.catalog.do(command).locator != info.locator:
            self.copies.remove(info.locator)

    def mark(self) -> None:
        self.marked += self.catalog.do(gc.mark_deleting, self.storage_id, [self.sha256], LATER, LATER)

    def sweep(self) -> None:
        """Remove the bytes of the marked blobs."""
        for info in self.marked:
            self.copies.discard(info.locator)

    def remove_rows(self) -> None:
        """Remove the rows of the marked blobs whose bytes were removed."""
        for info in self.marked:
            if info.locator not in self.copies:
                self.catalog.do(gc.remove_blob_row, self.storage_id, self.sha256, info.locator)

    def check(self) -> None:
        found = self.catalog.peek(blobs.find_blob, self.storage_id, self.sha256)
        for number in range(1, self.uploads + 1):
            file = self.catalog.peek(files.find_file, self.repository.id, f"file {number}")
            assert file.locator == found.locator
            assert file.locator in self.copies


def orphan(scene: Scene) -> None:
    info = make_blob(b"x", copy=0)
    scene.copies.add(info.locator)
    scene.catalog.do(blobs.claim_blob, scene.storage_id, info, NOW)


STEPS = ["mark", "sweep", "remove_rows", "publish"]


@pytest.mark.parametrize("order", sorted(set(itertools.permutations([*STEPS, "publish"]))), ids="-".join)
def test_an_upload_at_any_step_of_a_collection_keeps_its_bytes(order):
    scene = Scene()
    orphan(scene)
    for step in order:
        getattr(scene, step)()
        scene.check()


@pytest.mark.parametrize(
    "order", sorted(set(itertools.permutations(["mark", "sweep", "remove_rows"] * 2)))[::7], ids="-".join
)
def test_an_upload_during_two_concurrent_collections_keeps_its_bytes(order):
    for place in range(len(order) + 1):
        scene = Scene()
        orphan(scene)
        for step in (*order[:place], "publish", *order[place:]):
            getattr(scene, step)()
            scene.check()


def test_a_collection_removes_an_unreferenced_blob():
    scene = Scene()
    orphan(scene)
    for step in ("mark", "sweep", "remove_rows"):
        getattr(scene, step)()
    assert scene.copies == set()
    assert scene.catalog.peek(blobs.count_blobs, scene.storage_id) == 0


def test_removing_the_row_of_an_old_copy_leaves_a_newer_marked_copy():
    scene = Scene()
    orphan(scene)
    scene.mark()
    second = make_blob(b"x", copy=2)
    scene.catalog.do(blobs.claim_blob, scene.storage_id, second, NOW)
    scene.mark()
    first, again = scene.marked
    assert not scene.catalog.do(gc.remove_blob_row, scene.storage_id, scene.sha256, first.locator)
    assert scene.catalog.peek(gc.list_deleting, scene.storage_id) == [again] == [second]
    assert scene.catalog.do(gc.remove_blob_row, scene.storage_id, scene.sha256, second.locator)


def test_a_blob_marked_as_deleting_is_neither_found_nor_touched():
    scene = Scene()
    orphan(scene)
    scene.mark()
    assert scene.catalog.peek(blobs.find_blob, scene.storage_id, scene.sha256) is None
    assert not scene.catalog.do(blobs.touch_blob, scene.storage_id, scene.sha256, LATER)
    assert [info.sha256 for info in scene.catalog.peek(gc.list_deleting, scene.storage_id)] == [scene.sha256]


def test_a_candidate_that_is_touched_is_not_marked():
    scene = Scene()
    orphan(scene)
    (found,), _ = scene.catalog.peek(gc.candidates, scene.storage_id, LATER, 10)
    assert scene.catalog.do(blobs.touch_blob, scene.storage_id, found.sha256, LATER)
    scene.mark()
    assert scene.marked == []


REFERENCES = {
    "file": """
        INSERT INTO file (repository_id, storage_id, path, sha256, size, media_type, created_at)
        VALUES (:repository, :storage, 'p', :sha, 1, '', 0)
    """,
    "deployment_file": """
        INSERT INTO deployment_file (deployment_id, path, storage_id, sha256)
        SELECT id, 'p', :storage, :sha FROM deployment
    """,
    "package_blob": "INSERT INTO package_blob (package_id, sha256, touched_at) VALUES (1, :sha, 0)",
    "manifest": """
        INSERT INTO manifest (repository_id, package_id, digest, sha256, media_type, size, created_at)
        VALUES (:repository, 1, 'sha256:x', :sha, '', 1, 0)
    """,
}


def refer(tx, sql, storage_id, repository_id, sha256):
    tx.execute(
        "INSERT INTO package (id, repository_id, key, name, created_at, updated_at) VALUES (1, ?, 'p', 'p', 0, 0)",
        (repository_id,),
    )
    tx.execute(
        """
        INSERT INTO deployment (uid, repository_id, state, automatic, actor, created_at, touched_at)
        VALUES ('u', ?, 'VALIDATED', 0, 'ann', 0, 0)
        """,
        (repository_id,),
    )
    values = {"storage": storage_id, "repository": repository_id, "sha": bytes.fromhex(sha256)}
    tx.connection.execute(sql, values)


@pytest.mark.parametrize("kind", REFERENCES)
def test_a_blob_with_any_kind_of_reference_is_not_marked(kind):
    scene = Scene()
    orphan(scene)
    assert len(scene.catalog.peek(gc.candidates, scene.storage_id, LATER, 10)[0]) == 1
    scene.catalog.do(refer, REFERENCES[kind], scene.storage_id, scene.repository.id, scene.sha256)
    assert scene.catalog.peek(gc.candidates, scene.storage_id, LATER, 10) == ([], None)
    scene.mark()
    assert scene.marked == []


@pytest.mark.parametrize("kind", REFERENCES)
def test_references_in_another_storage_do_not_count(kind):
    scene = Scene()
    orphan(scene)
    other = scene.catalog.do(add_repository, storage="other")
    scene.catalog.do(refer, REFERENCES[kind], other.storage_id, other.id, scene.sha256)
    scene.mark()
    assert [info.sha256 for info in scene.marked] == [scene.sha256]


def test_a_page_of_candidates_is_limited_by_the_blobs_examined():
    scene = Scene()
    infos = [make_blob(b"%d" % n) for n in range(10)]
    for number, info in enumerate(infos):
        scene.catalog.do(blobs.claim_blob, scene.storage_id, info, NOW + number // 3)
        if number % 2:
            new = NewFile(path=info.sha256, blob=info)
            scene.catalog.do(files.add_file, scene.repository.id, scene.storage_id, new, None, None, NOW)
    seen, pages, cursor = [], 0, gc.Cursor()
    while cursor is not None:
        page, cursor = scene.catalog.peek(gc.candidates, scene.storage_id, NOW + 3, 4, cursor)
        seen += page
        pages += 1
    assert {info.sha256 for info in seen} == {info.sha256 for info in infos[:9:2]}
    assert len(seen) == 5
    assert pages == 3
