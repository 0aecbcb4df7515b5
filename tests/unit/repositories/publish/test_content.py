"""Publishing is atomic and idempotent, and leaves no unreferenced copies."""

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import formatEvent, globalLogPublisher

from pkgrepo.errors import (
    Conflict,
    DigestMismatch,
    FileBurned,
    FileExists,
    NotFound,
    ReadOnly,
    StorageFailed,
    StorageFull,
    TooLarge,
)
from pkgrepo.model import SYSTEM, Actor, RepositoryType
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.inprocess_server import until
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import NOW, chunks
from tests.support.write_barrier import WriteBarrier

WHEEL = make_wheel("demo", "1.0")
OTHER = make_wheel("demo", "1.0", pad=10)


def named(world):
    """The locators that rows name."""
    rows = world.catalog.peek(lambda reader: reader.all("SELECT locator FROM blob ORDER BY locator"))
    return [row[0] for row in rows]


def stored(world, path="packages/demo/1.0/demo-1.0-py3-none-any.whl"):
    return world.catalog.peek(files.find_file, world.repository.id, path)


async def test_a_publish_writes_version_file_fragment_event_and_usage(world):
    published = await world.publish(*WHEEL)
    assert published.changed
    assert [file.path for file in published.files] == [stored(world).path, stored(world).path + ".metadata"]
    assert published.surplus == ()
    package = world.catalog.peek(packages.find_package, world.repository.id, "demo")
    assert (package.name, package.serial) == ("demo", published.serial)
    assert world.poked == [world.repository]
    assert named(world) == world.copies()
    repository = world.catalog.peek(repositories.get_repository, world.repository.id)
    assert repository.package_count == 1
    assert repository.bytes_used == sum(file.size for file in published.files)


async def test_the_log_names_package_user_and_request_of_a_publish(world):
    told = []
    globalLogPublisher.addObserver(told.append)
    try:
        await world.publish(*WHEEL, actor=Actor(7, "ann", request_id="request-1"))
    finally:
        globalLogPublisher.removeObserver(told.append)
    lines = [formatEvent(each) for each in told]
    assert "published demo 1.0 in main/py by ann (request request-1)" in lines


async def test_publishing_the_same_bytes_again_changes_nothing_and_leaves_no_copy(world):
    first = await world.publish(*WHEEL)
    events = world.count("event")
    world.poked.clear()
    second = await world.publish(*WHEEL)
    assert not second.changed
    assert second.serial == first.serial
    assert len(second.surplus) == 2
    assert world.count("event") == events
    assert world.poked == []
    assert named(world) == world.copies()


async def test_the_same_bytes_in_two_files_share_one_copy(world):
    await world.publish(*WHEEL)
    other = await world.add_repository("other")
    published = await world.publish(*WHEEL, where=other)
    assert published.changed
    assert len(world.copies()) == 2
    assert world.catalog.peek(files.find_file, other.id, stored(world).path).locator == stored(world).locator


async def test_other_content_under_a_published_name_is_refused_and_removed(world):
    await world.publish(*WHEEL)
    before = (world.copies(), stored(world), world.count("event"))
    with pytest.raises(FileExists) as raised:
        await world.publish(*OTHER)
    assert raised.value.stored_sha256 == stored(world).sha256
    assert (world.copies(), stored(world), world.count("event")) == before


async def test_a_format_that_refuses_undoes_everything(world):
    await world.publish(*WHEEL)
    await world.publish(*make_sdist("demo", "1.0"))
    before = (world.copies(), world.count("event"), world.count("file"), world.count("version"))
    with pytest.raises(Conflict):
        await world.publish(*make_sdist("demo", "1.0", ending=".zip"))
    assert (world.copies(), world.count("event"), world.count("file"), world.count("version")) == before
    assert named(world) == world.copies()


async def test_a_refused_first_release_leaves_no_package(world):
    def refuse(index, change):
        raise Conflict("no")

    async with world.content.stage(world.repository) as staged:
        release = await world.release(staged, *WHEEL)
        with pytest.raises(Conflict):
            await world.content.publish(world.repository, release, staged, admitted(world.repository), refuse)
    assert [world.count(table) for table in ("package", "version", "file", "blob", "event")] == [0] * 5
    assert world.copies() == []


async def test_a_guard_is_asked_in_the_transaction_before_anything_is_written(world):
    seen = []

    def guard(tx):
        seen.append(tx.one("SELECT (SELECT COUNT(*) FROM blob), (SELECT COUNT(*) FROM package)"))
        raise Conflict("no")

    with pytest.raises(Conflict):
        await world.publish(*WHEEL, guard=guard)
    assert [tuple(row) for row in seen] == [(0, 0)]
    assert [world.count(table) for table in ("package", "version", "file", "blob", "event")] == [0] * 5
    assert world.copies() == []


async def test_a_virtual_repository_gets_no_content_of_its_own(world):
    virtual = evolve(world.repository, type=RepositoryType.VIRTUAL)
    with pytest.raises(ReadOnly):
        await world.publish(*WHEEL, where=virtual)
    assert (world.count("file"), world.copies()) == (0, [])


async def test_a_replacement_removes_the_old_file_and_its_companions(world):
    await world.publish(*WHEEL)
    path = stored(world).path
    before = stored(world)
    published = await world.publish(*OTHER, overwrite=True, obsolete=(path + ".metadata", path + ".asc"))
    assert published.changed
    assert stored(world).sha256 != before.sha256
    repository = world.catalog.peek(repositories.get_repository, world.repository.id)
    held = world.catalog.peek(lambda reader: reader.one("SELECT SUM(size) FROM file"))[0]
    assert repository.bytes_used == held


async def test_a_burned_name_is_accepted_only_with_reuse(world):
    await world.publish(*WHEEL)
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, True)
    for wheel in (OTHER, WHEEL):
        with pytest.raises(FileBurned):
            await world.publish(*wheel)
    assert world.count("tombstone") == 2
    assert (await world.publish(*OTHER, reuse=True)).changed
    assert world.count("tombstone") == 0


async def test_staged_blobs_that_are_not_published_are_removed(world):
    async with world.content.stage(world.repository) as staged:
        await staged.receive(chunks(b"x" * 1000))
        await staged.receive(chunks(bytes(1_000_000)))
        await staged.store(b"y")
        staged.adopt(await put(world.store, b"committed by a resumed upload"))
        assert len(world.copies()) == 1
    assert world.copies() == []
    assert list((world.root / "uploads").iterdir()) == []


async def put(store, data):
    async with store.begin() as upload:
        upload.write(data)
        return await upload.commit()


async def test_all_files_of_a_release_are_committed_by_one_call_before_the_transaction(world, monkeypatch):
    store, calls = world.store, []
    commit, write = store.commit_together, world.catalog.write

    async def committing(uploads):
        calls.append(len(uploads))
        await commit(uploads)

    async def writing(*args):
        calls.append(len(world.copies()))
        return await write(*args)

    monkeypatch.setattr(store, "commit_together", committing)
    world.catalog.write = writing
    await world.publish(*WHEEL)
    assert calls == [2, 2]


@pytest.mark.parametrize("error", [StorageFull("main"), StorageFailed("main")])
async def test_bytes_that_cannot_be_made_durable_are_not_published(world, monkeypatch, error):
    async def fail(_uploads):
        raise error

    monkeypatch.setattr(world.store, "commit_together", fail)
    with pytest.raises(type(error)):
        await world.publish(*WHEEL)
    assert stored(world) is None
    assert world.copies() == []


async def test_a_publish_is_finished_when_the_client_disconnects_during_the_commit(world, monkeypatch):
    commit, arrived, gate = world.store.commit_together, Deferred(), Deferred()

    async def committing(uploads):
        arrived.callback(None)
        await gate
        await commit(uploads)

    monkeypatch.setattr(world.store, "commit_together", committing)
    running = Deferred.fromCoroutine(world.publish(*WHEEL))
    await arrived
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    gate.callback(None)
    await until(lambda: world.poked)
    assert named(world) == world.copies()
    assert (await world.store.stat(stored(world).locator))[0] == stored(world).size


async def test_staged_blobs_are_removed_after_an_error(world):
    async def fail():
        async with world.content.stage(world.repository) as staged:
            await staged.store(b"y")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert world.copies() == []


async def test_a_body_that_is_refused_leaves_nothing(world):
    async def breaks():
        yield b"half"
        raise ConnectionError

    async with world.content.stage(world.repository) as staged:
        with pytest.raises(TooLarge):
            await staged.receive(chunks(b"x" * 1000, 100), limit=999)
        with pytest.raises(DigestMismatch):
            await staged.receive(chunks(b"x"), expected={"sha256": "0" * 64})
        with pytest.raises(ConnectionError):
            await staged.receive(breaks())
        assert world.copies() == []


async def test_a_client_that_disconnects_during_the_upload_leaves_nothing(world):
    coming = Deferred()

    async def body():
        yield b"half"
        await coming
        yield b"never"

    async def upload():
        async with world.content.stage(world.repository) as staged:
            await staged.receive(body())

    running = Deferred.fromCoroutine(upload())
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    assert world.copies() == []
    assert list((world.root / "uploads").iterdir()) == []


async def test_a_publish_is_finished_when_the_client_disconnects_during_the_transaction(world):
    gate = WriteBarrier(world.catalog)
    running = Deferred.fromCoroutine(world.publish(*WHEEL))
    await gate.arrived
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    gate.open.callback(None)
    await until(lambda: world.poked)
    assert stored(world) is not None
    assert named(world) == world.copies()
    assert (await world.store.stat(stored(world).locator))[0] == stored(world).size
    assert not (await world.publish(*WHEEL)).changed


async def test_of_two_concurrent_publishes_with_different_content_one_succeeds(world):
    gate = WriteBarrier(world.catalog)
    slow = Deferred.fromCoroutine(world.publish(*WHEEL))
    await gate.arrived
    assert (await world.publish(*OTHER)).changed
    gate.open.callback(None)
    with pytest.raises(FileExists):
        await slow
    assert named(world) == world.copies()


async def test_two_concurrent_publishes_with_the_same_content_both_succeed(world):
    gate = WriteBarrier(world.catalog)
    slow = Deferred.fromCoroutine(world.publish(*WHEEL))
    await gate.arrived
    assert (await world.publish(*WHEEL)).changed
    gate.open.callback(None)
    assert not (await slow).changed
    assert named(world) == world.copies()


@pytest.mark.parametrize("error", [StorageFull("catalog"), StorageFailed("catalog")])
async def test_copies_stay_when_the_outcome_of_the_transaction_is_unknown(world, error):
    async def fail(*_args, **_kwargs):
        raise error

    world.catalog.write = fail
    with pytest.raises(type(error)):
        await world.publish(*WHEEL)
    assert len(world.copies()) == 2


async def test_a_copy_that_cannot_be_removed_does_not_undo_the_release(world, monkeypatch):
    await world.publish(*WHEEL)

    async def fail(_locator):
        raise StorageFailed("main")

    monkeypatch.setattr(world.store, "delete", fail)
    assert not (await world.publish(*WHEEL)).changed


async def test_a_publish_does_not_reuse_bytes_that_garbage_collection_is_deleting(world):
    await world.publish(*WHEEL)
    old = stored(world)
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
    later = NOW + 10**9
    assert await world.catalog.write(gc.mark_deleting, world.storage.id, [old.sha256], later, NOW)
    published = await world.publish(*WHEEL)
    assert published.changed
    fresh = stored(world)
    assert fresh.locator != old.locator
    await world.store.delete(old.locator)
    assert not await world.catalog.write(gc.remove_blob_row, world.storage.id, old.sha256, old.locator)
    assert (await world.store.stat(fresh.locator))[0] == fresh.size


async def test_an_upload_replaces_bytes_that_were_marked_as_suspect(world):
    await world.publish(*WHEEL)
    old = stored(world)
    await world.catalog.write(blobs.mark_suspect, world.storage.id, old.sha256, old.locator)
    assert stored(world).locator == ""
    await world.publish(*WHEEL)
    assert stored(world).locator not in ("", old.locator)
    assert (await world.store.stat(stored(world).locator))[0] == old.size


async def test_a_change_of_a_missing_package_is_refused_without_notification(world):
    with pytest.raises(NotFound):
        await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, True)
    assert world.poked == []


async def test_the_log_line_of_a_publish_has_names_only(world):
    events = []
    globalLogPublisher.addObserver(events.append)
    await world.publish(*WHEEL)
    globalLogPublisher.removeObserver(events.append)
    told = [event for event in events if event.get("package") == "demo"]
    assert [(event["version"], event["repository"]) for event in told] == [("1.0", "main/py")]
