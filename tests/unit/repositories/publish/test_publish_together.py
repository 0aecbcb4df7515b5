"""Several releases of different packages are published in one transaction: all of them or none."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import formatEvent, globalLogPublisher

from pkgrepo.errors import Conflict, FileBurned, FileExists, StorageFailed, StorageFull
from pkgrepo.model import SYSTEM, Actor
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.inprocess_server import until
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.write_barrier import WriteBarrier

ONE = make_wheel("one", "1.0")
TWO = make_wheel("two", "2.0")
THREE = make_wheel("three", "3.0")
OTHER_TWO = make_wheel("two", "2.0", pad=10)
OTHER_THREE = make_wheel("three", "3.0", pad=10)

TABLES = ("package", "version", "file", "blob", "fragment", "event")


async def publish(world, *wheels, actor=SYSTEM, indexer=None, **changes):
    """Stage all of the wheels, and publish them together."""
    index = indexer or world.format.index
    async with world.content.stage(world.repository) as staged:
        releases = [await world.release(staged, *wheel, **changes) for wheel in wheels]
        return await world.content.publish_together(
            world.repository, releases, staged, admitted(world.repository, actor), index
        )


def counts(world):
    return {table: world.count(table) for table in TABLES}


def named(world):
    """The locators that rows name."""
    rows = world.catalog.peek(lambda reader: reader.all("SELECT locator FROM blob ORDER BY locator"))
    return [row[0] for row in rows]


def repository_row(world):
    return world.catalog.peek(repositories.get_repository, world.repository.id)


async def test_all_releases_are_published_with_an_event_each_and_one_notification(world):
    published = await publish(world, ONE, TWO, THREE)
    assert [each.changed for each in published] == [True] * 3
    rows = world.catalog.peek(lambda reader: reader.all("SELECT package_key, kind FROM event ORDER BY seq"))
    assert rows == [("one", "published"), ("two", "published"), ("three", "published")]
    assert [each.serial for each in published] == sorted({each.serial for each in published})
    assert world.poked == [world.repository]
    assert named(world) == world.copies()
    assert (repository_row(world).package_count, repository_row(world).bytes_used) == (
        3,
        sum(file.size for each in published for file in each.files),
    )


async def test_they_share_the_commit_of_their_bytes_and_the_transaction(world, monkeypatch):
    commits, writes = [], []
    commit, write = world.store.commit_together, world.catalog.write

    async def committing(uploads):
        commits.append(len(uploads))
        await commit(uploads)

    async def writing(*args):
        writes.append(args[0])
        return await write(*args)

    monkeypatch.setattr(world.store, "commit_together", committing)
    monkeypatch.setattr(world.catalog, "write", writing)
    await publish(world, ONE, TWO, THREE)
    assert commits == [6]  # of each wheel the file and its metadata
    assert len(writes) == 1


async def test_the_indexer_is_given_all_files_of_a_version_that_is_new_and_alone(world):
    given = []

    def look(index, change):
        given.append(change.files is not None)
        assert list(index.files_after(change)) == index.files(change.version)

    await publish(world, ONE, indexer=look)
    await publish(world, make_sdist("one", "1.0"), indexer=look)  # now the version has files of an earlier publish
    await publish(world, TWO, make_sdist("two", "2.0"), indexer=look)  # and now of another release
    assert given == [True, False, False, False]


async def test_a_conflict_of_the_last_release_publishes_none(world):
    await publish(world, THREE)
    before = (counts(world), world.copies(), repository_row(world))
    world.poked.clear()
    with pytest.raises(FileExists):
        await publish(world, ONE, TWO, OTHER_THREE)
    assert (counts(world), world.copies(), repository_row(world)) == before
    assert world.poked == []
    assert world.catalog.peek(packages.find_package, world.repository.id, "one") is None


async def test_a_burned_name_in_the_middle_publishes_none(world):
    await publish(world, TWO)
    await world.content.change(remove_files, world.repository, "two", "2", None, SYSTEM, world.format.index, True)
    before = (counts(world), world.copies(), repository_row(world))
    with pytest.raises(FileBurned):
        await publish(world, ONE, TWO, THREE)
    assert (counts(world), world.copies(), repository_row(world)) == before


async def test_a_format_that_refuses_the_last_release_undoes_those_before(world):
    def refuse_three(index, change):
        if index.package.key == "three":
            raise Conflict("no")
        world.format.index(index, change)

    async with world.content.stage(world.repository) as staged:
        releases = [await world.release(staged, *wheel) for wheel in (ONE, TWO, THREE)]
        with pytest.raises(Conflict):
            await world.content.publish_together(
                world.repository, releases, staged, admitted(world.repository), refuse_three
            )
    assert counts(world) == dict.fromkeys(TABLES, 0)
    assert world.copies() == []


async def test_a_guard_of_the_last_release_undoes_those_before(world):
    def guard(_tx):
        raise Conflict("no")

    async with world.content.stage(world.repository) as staged:
        first = await world.release(staged, *ONE)
        last = await world.release(staged, *TWO, guard=guard)
        with pytest.raises(Conflict):
            await world.content.publish_together(
                world.repository, (first, last), staged, admitted(world.repository), world.format.index
            )
    assert counts(world) == dict.fromkeys(TABLES, 0)
    assert world.copies() == []


async def test_publishing_the_same_again_changes_nothing_and_leaves_no_copy(world):
    await publish(world, ONE, TWO)
    before = (counts(world), world.copies(), repository_row(world))
    world.poked.clear()
    again = await publish(world, ONE, TWO)
    assert [each.changed for each in again] == [False, False]
    assert (counts(world), world.copies(), repository_row(world)) == before
    assert world.poked == []


async def test_those_that_are_published_already_do_not_hinder_the_others(world):
    await publish(world, ONE)
    published = await publish(world, ONE, TWO)
    assert [each.changed for each in published] == [False, True]
    assert named(world) == world.copies()


async def test_the_same_bytes_in_two_releases_share_one_copy(world):
    published = await publish(world, ONE, ONE)
    assert [each.changed for each in published] == [True, False]
    assert len(published[1].surplus) == 2
    assert named(world) == world.copies()


async def test_two_versions_of_one_package_are_published_together(world):
    published = await publish(world, ONE, make_wheel("one", "1.1"))
    assert [each.changed for each in published] == [True, True]
    package = world.catalog.peek(packages.find_package, world.repository.id, "one")
    assert package.serial == published[1].serial
    assert repository_row(world).package_count == 1


async def test_the_log_has_a_line_for_each_release(world):
    told = []
    globalLogPublisher.addObserver(told.append)
    try:
        await publish(world, ONE, TWO, actor=Actor(7, "ann", request_id="request-1"))
    finally:
        globalLogPublisher.removeObserver(told.append)
    lines = [line for each in told if "(request request-1)" in (line := formatEvent(each) or "")]
    assert [line.split()[1] for line in lines] == ["one", "two"]


@pytest.mark.parametrize("error", [StorageFull("main"), StorageFailed("main")])
async def test_bytes_that_cannot_be_made_durable_publish_none(world, monkeypatch, error):
    async def fail(_uploads):
        raise error

    monkeypatch.setattr(world.store, "commit_together", fail)
    with pytest.raises(type(error)):
        await publish(world, ONE, TWO)
    assert counts(world) == dict.fromkeys(TABLES, 0)
    assert world.copies() == []


async def test_of_two_that_overlap_one_is_published_whole(world):
    gate = WriteBarrier(world.catalog)
    slow = Deferred.fromCoroutine(publish(world, ONE, OTHER_TWO))
    await gate.arrived
    await publish(world, TWO, THREE)
    gate.open.callback(None)
    with pytest.raises(FileExists):
        await slow
    keys = world.catalog.peek(lambda reader: [row[0] for row in reader.all("SELECT key FROM package ORDER BY key")])
    assert keys == ["three", "two"]
    assert named(world) == world.copies()


async def test_they_are_published_although_the_client_disconnects_during_the_transaction(world):
    gate = WriteBarrier(world.catalog)
    running = Deferred.fromCoroutine(publish(world, ONE, TWO))
    await gate.arrived
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    gate.open.callback(None)
    await until(lambda: world.poked)
    assert named(world) == world.copies()
    for name, version in (("one", "1.0"), ("two", "2.0")):
        path = f"packages/{name}/{version}/{name}-{version}-py3-none-any.whl"
        assert world.catalog.peek(files.find_file, world.repository.id, path) is not None
