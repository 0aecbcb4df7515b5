import pytest

from pkgrepo.model import SYSTEM
from pkgrepo.model.deployments import StagedFile
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import first_sights
from pkgrepo.storage.catalog.packages import checksum_claims, deployments, events, files, packages, pins, tags
from pkgrepo.storage.catalog.server import purge, repositories, settings
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob, publish

CONTENT = (
    "file",
    "checksum_claim",
    "first_sight",
    "retired_name",
    "version",
    "fragment",
    "tag",
    "package",
    "tombstone",
    "deployment_file",
    "deployment",
    "repository",
)

GONE = {"serial": 0, "now_ms": NOW}


def fill(tx, repository):
    for n in range(7):
        file = publish(tx, repository, f"{n}.whl", package=f"p{n % 2}", version=f"{n}")
        index_documents.put_fragment(tx, file.package_id, "html", b"", f"{n}", b"x")
        tags.set_tag(tx, file.package_id, f"{n}", actor=SYSTEM, now_ms=NOW, version_id=file.version_id)
    for n in range(3):
        checksum_claims.put_claim(tx, repository.id, f"{n}", "md5", "00", NOW)
        packages.remove_package(tx, packages.ensure_package(tx, repository.id, **GONE, name=f"{n}", key=f"{n}")[0].id)
        first_sights.note_sight(tx, repository.id, "app", "1", f"{n}", NOW, NOW + n)
    for n in range(2):
        made = deployments.add_deployment(
            tx,
            uid=f"{repository.name} {n}",
            repository_id=repository.id,
            package_key="",
            name="",
            automatic=False,
            user_id=1,
            actor="ann",
            size=0,
            meta={},
            leased=False,
            now_ms=NOW,
        )
        for path in ("a", "b"):
            blob = blobs.claim_blob(tx, repository.storage_id, make_blob(path.encode()), NOW)
            deployments.add_staged_file(tx, made.id, repository.storage_id, StagedFile(path, blob))
    files.remove_file(tx, publish(tx, repository, "gone"), actor=SYSTEM, tombstone=True, now_ms=NOW)
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=None,
        package_key="p0",
        version_key="",
        kind="x",
        data={},
        actor=SYSTEM,
        now_ms=NOW,
    )


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    catalog.doomed = catalog.do(add_repository, "doomed")
    catalog.kept = catalog.do(add_repository, "kept")
    for repository in (catalog.doomed, catalog.kept):
        catalog.do(fill, repository)
    return catalog


def rows(catalog, table):
    return catalog.tx.one(f"SELECT COUNT(*) FROM {table}")[0]


@pytest.mark.parametrize("limit", [1, 3, 500])
def test_a_purge_in_steps_leaves_the_other_repository_whole(catalog, limit):
    before = {table: rows(catalog, table) for table in CONTENT}
    catalog.do(repositories.remove_repository, catalog.doomed.id, now_ms=NOW)
    steps = 1
    while catalog.do(purge.purge_repository, catalog.doomed.id, limit):
        steps += 1
        assert steps < 1000
    assert {table: rows(catalog, table) for table in CONTENT} == {table: n // 2 for table, n in before.items()}
    assert (steps == 1) == (limit == 500)
    assert catalog.peek(files.find_file, catalog.kept.id, "0.whl") is not None


def test_events_the_download_log_and_blobs_stay(catalog):
    catalog.do(repositories.remove_repository, catalog.doomed.id, now_ms=NOW)
    count = catalog.peek(blobs.count_blobs, catalog.doomed.storage_id)
    while catalog.do(purge.purge_repository, catalog.doomed.id):
        pass
    assert [each.kind for each in catalog.peek(events.events_after, 0, 10, catalog.doomed.id)] == [
        "x",
        events.REPOSITORY_REMOVED,
    ]
    assert catalog.peek(blobs.count_blobs, catalog.doomed.storage_id) == count


def test_a_repository_that_was_not_removed_is_not_purged(catalog):
    assert not catalog.do(purge.purge_repository, catalog.kept.id)
    assert catalog.peek(files.find_file, catalog.kept.id, "0.whl") is not None


def test_a_removal_with_purge_is_due_at_once_and_others_after_the_retention_time(catalog):
    catalog.do(repositories.remove_repository, catalog.doomed.id, now_ms=NOW, purge=True)
    catalog.do(repositories.remove_repository, catalog.kept.id, now_ms=NOW)
    assert catalog.peek(purge.due_repositories, NOW) == [catalog.doomed.id]
    assert catalog.peek(purge.due_repositories, NOW + 1) == [catalog.doomed.id, catalog.kept.id]


async def test_everything_due_is_purged(catalog):
    catalog.do(repositories.remove_repository, catalog.doomed.id, now_ms=NOW, purge=True)
    assert await purge.purge_due(catalog, NOW) == 1
    assert catalog.peek(purge.due_repositories, NOW) == []
    assert rows(catalog, "repository") == 1


def test_the_time_of_the_last_retention_goes_with_its_repository():
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    catalog.do(settings.put, settings.retention_key(repository.uid), "1")
    catalog.do(pins.put_pin, repository.id, "demo", "1.0", "", SYSTEM, NOW)
    catalog.do(repositories.remove_repository, repository.id, now_ms=NOW, purge=True)
    while catalog.do(purge.purge_repository, repository.id):
        pass
    assert catalog.peek(settings.get, settings.retention_key(repository.uid)) is None
    assert catalog.peek(pins.list_pins, repository.id) == []
