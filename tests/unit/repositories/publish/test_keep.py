"""Releases that no client waits for share the wait for the disk and a command; a refusal is that of one alone."""

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred, DeferredList, gatherResults
from twisted.internet.task import Clock

from pkgrepo.concurrency.batches import BatchDelay
from pkgrepo.errors import FileExists, StorageFailed, StorageFull
from pkgrepo.repositories.publish.kept import KeptTogether
from pkgrepo.storage.catalog.blobs.blobs import mark_suspect
from pkgrepo.storage.catalog.packages import files
from tests.support.admission import admitted
from tests.support.inprocess_server import until
from tests.support.python_packages import make_wheel

WHEELS = [make_wheel(name, "1.0") for name in ("one", "two", "three")]


async def start(world, wheels):
    """Begin to keep wheels, all at the same time."""
    async with world.content.stage(world.repository) as staged:
        releases = [await world.release(staged, *wheel) for wheel in wheels]
        return [
            Deferred.fromCoroutine(
                world.content.keep(world.repository, release, staged, admitted(world.repository), world.format.index)
            )
            for release in releases
        ]


def find(world, wheel):
    name, version = wheel[0].split("-")[:2]
    return world.catalog.peek(files.find_file, world.repository.id, f"packages/{name}/{version}/{wheel[0]}")


@pytest.fixture
def commits(world, monkeypatch):
    """How many copies each call to the store made durable; every call waits for ``commits.gate``."""
    commit = world.store.commit_together

    class Commits(list):
        gate = Deferred()
        error = None

    made = Commits()

    async def committing(uploads):
        made.append(len(uploads))
        await made.gate
        if made.error is not None:
            raise made.error
        await commit(uploads)

    monkeypatch.setattr(world.store, "commit_together", committing)
    return made


def named(world):
    rows = world.catalog.peek(lambda reader: reader.all("SELECT locator FROM blob ORDER BY locator"))
    return [row[0] for row in rows]


async def test_those_that_come_while_one_is_made_durable_are_made_durable_together(world, commits):
    kept = await start(world, WHEELS)
    commits.gate.callback(None)
    assert [(await each).changed for each in kept] == [True] * 3
    assert commits == [2, 4]  # of each wheel the file and its metadata
    assert named(world) == world.copies()


async def test_they_are_written_by_one_command(world, commits, monkeypatch):
    written = []
    write = world.catalog.write

    def writing(command, repository, releases, *args):
        written.append([each.package_key for each in releases])
        return write(command, repository, releases, *args)

    monkeypatch.setattr(world.catalog, "write", writing)
    kept = await start(world, WHEELS)
    commits.gate.callback(None)
    results = [await each for each in kept]
    assert [each.files[0].path.split("/")[1] for each in results] == ["one", "two", "three"]
    assert written == [["one"], ["two", "three"]]  # the first one did not wait


async def test_a_full_disk_is_the_error_of_all_and_their_copies_stay(world, commits, monkeypatch):
    commits.gate.callback(None)

    async def failing(*_args, **_kwargs):
        raise StorageFull("main")

    with monkeypatch.context() as patch:
        patch.setattr(world.catalog, "write", failing)
        for each in await start(world, WHEELS):
            with pytest.raises(StorageFull):
                await each
    assert len(world.copies()) == 6
    assert named(world) == []


async def test_one_that_is_refused_does_not_stop_the_others(world, commits):
    commits.gate.callback(None)
    await gatherResults(await start(world, WHEELS[1:2]))
    wheels = [WHEELS[0], make_wheel("two", "1.0", pad=10), WHEELS[2]]
    outcomes = await DeferredList(await start(world, wheels), consumeErrors=True)
    assert [succeeded for succeeded, _ in outcomes] == [True, False, True]
    assert outcomes[1][1].check(FileExists)
    assert all(find(world, wheel) is not None for wheel in WHEELS)
    assert named(world) == world.copies()


async def test_bytes_that_cannot_be_made_durable_leave_nothing_of_any(world, commits):
    commits.error = StorageFull("main")
    kept = await start(world, WHEELS)
    commits.gate.callback(None)
    for each in kept:
        with pytest.raises(StorageFull):
            await each
    assert world.copies() == named(world) == []
    assert world.poked == []


async def test_one_is_kept_although_its_caller_stops_while_it_waits(world, commits):
    kept = await start(world, WHEELS)
    kept[2].cancel()
    with pytest.raises(CancelledError):
        await kept[2]
    commits.gate.callback(None)
    await until(lambda: find(world, WHEELS[2]) is not None)
    assert (await kept[1]).changed
    assert named(world) == world.copies()


async def keep_apart(world, wheel, *, at_once):
    """Begin to keep the metadata of a wheel alone, and at once or then the wheel with them."""
    async with world.content.stage(world.repository) as staged:
        alone, whole = [await world.release(staged, *wheel) for _ in range(2)]
        alone = evolve(alone, files=tuple(each for each in alone.files if each.path.endswith(".metadata")))
        assert [len(each.files) for each in (alone, whole)] == [1, 2]
        kept = []
        for each in (alone, whole):
            keeping = world.content.keep(world.repository, each, staged, admitted(world.repository), world.format.index)
            kept.append(Deferred.fromCoroutine(keeping))
            if not at_once:
                await kept[0]
        return kept


@pytest.mark.parametrize("at_once", [False, True], ids=["before", "together"])
async def test_metadata_that_come_alone_are_stored_once(world, commits, at_once):
    others = await start(world, WHEELS[:1])  # the next ones wait for it
    if not at_once:
        commits.gate.callback(None)
        await others[0]
    kept = await keep_apart(world, WHEELS[1], at_once=at_once)
    if at_once:
        commits.gate.callback(None)
        await others[0]
    for each in kept:
        await each
    assert commits == ([2, 2] if at_once else [2, 1, 1])
    paths = [row[0] for row in world.catalog.peek(lambda reader: reader.all("SELECT path FROM file"))]
    assert len(paths) == 4
    assert sum(path.endswith(".metadata") for path in paths) == 2
    assert named(world) == world.copies()


async def keep_again(world, *, parts):
    """Keep one file of a wheel (by its place in the release), and then the wheel, whose commit has begun."""
    async with world.content.stage(world.repository) as staged:
        first, whole = [await world.release(staged, *WHEELS[1]) for _ in range(2)]
        first = evolve(first, files=first.files[parts])
        await world.content.keep(world.repository, first, staged, admitted(world.repository), world.format.index)
        stored = [find_path(world, each.path) for each in first.files]
        yield stored
        staged.commit_early(whole.files[0].blob)
        await world.content.keep(world.repository, whole, staged, admitted(world.repository), world.format.index)
    yield [find_path(world, each.path) for each in whole.files]


def find_path(world, path):
    return world.catalog.peek(files.find_file, world.repository.id, path)


async def test_a_copy_whose_commit_has_begun_is_removed_if_it_is_surplus(world, commits):
    commits.gate.callback(None)
    assert [len(kept) async for kept in keep_again(world, parts=slice(1))] == [1, 2]
    assert named(world) == world.copies()


async def test_metadata_whose_bytes_are_lost_are_stored_again_with_their_wheel(world, commits):
    commits.gate.callback(None)
    keeping = keep_again(world, parts=slice(1, 2))
    (lost,) = await anext(keeping)
    await world.catalog.write(mark_suspect, lost.storage_id, lost.sha256, lost.locator)
    assert all(each.locator for each in await anext(keeping))


async def test_files_are_kept_although_it_cannot_be_read_which_are_there(world, commits, monkeypatch):
    commits.gate.callback(None)

    async def failing(*_args, **_kwargs):
        raise StorageFailed("catalog")

    with monkeypatch.context() as patch:
        patch.setattr(world.catalog, "look", failing)
        await gatherResults(await start(world, WHEELS))
    assert named(world) == world.copies()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lingering(world, clock):
    """What makes files of 1 byte wait; returns which of them wait no longer."""
    kept = KeptTogether(world.catalog, world.clock, BatchDelay(clock, 2, 100, 1000))
    waiting = []

    def linger(count=0, size=1):
        waiting.extend(Deferred.fromCoroutine(kept.wait_for_batch(world.repository, size)) for _ in range(count))
        return [each.called for each in waiting]

    linger.kept = kept
    return linger


def test_files_linger_until_the_time_is_over(lingering, clock):
    lingering(2)
    clock.advance(1.9)
    assert lingering(1) == [False] * 3
    clock.advance(0.1)
    clock.advance(0)
    assert lingering() == [True] * 3


def test_files_linger_no_longer_while_somebody_waits(lingering, clock):
    lingering(1)
    with lingering.kept.without_delay():
        clock.advance(0)
        assert lingering(1) == [True, False]
        clock.advance(0)
        assert lingering() == [True, True]
    assert lingering(1)[-1] is False


def test_large_file_lingers_as_little_as_those_before_it(lingering, clock):
    lingering(1)
    lingering(1, size=1000)
    clock.advance(0)
    assert lingering() == [True, True]
