"""The daily collection runs once a day on each storage, with a grace period of a day."""

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.repositories.upkeep.gc import KIND, GarbageCollector
from pkgrepo.repositories.upkeep.housekeeping import DAY_MS, EVERY_S, DailyCollection
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.storage.catalog.blobs.gc import BACKUP
from tests.support.repositories import NOW
from tests.unit.repositories.upkeep.test_gc import StillClock, add_blob


@pytest.fixture
def clock():
    return StillClock(NOW)


@pytest.fixture
def jobs(world, clock):
    return Jobs(catalog=world.catalog, clock=clock, reactor=ReactorClock())


@pytest.fixture
def make(world, clock, jobs):
    def make(reactor=None):
        context = evolve(world.context, clock=clock)
        collector = GarbageCollector(context, on_change=world.poked.append)
        return DailyCollection(context, collector=collector, jobs=jobs, reactor=reactor or ReactorClock())

    return make


async def test_collections_are_a_day_apart_also_after_restarts(world, make, jobs, clock):
    await add_blob(world, b"loose")
    await make().run_once()
    clock.ms += DAY_MS - 1
    await make().run_once()
    assert await jobs.last(KIND, world.storage.uid) is None
    clock.ms += 1
    await make().run_once()
    first = await jobs.last(KIND, world.storage.uid)
    assert (first.state, first.result["young"], first.result["blobs"]) == ("done", 1, 0)  # used a day ago, no longer
    clock.ms += DAY_MS - 1
    await make().run_once()
    assert (await jobs.last(KIND, world.storage.uid)).uid == first.uid
    clock.ms += 1
    await make().run_once()
    assert (await jobs.last(KIND, world.storage.uid)).result["freed"] == len(b"loose")
    assert world.copies() == []


async def test_a_collection_that_finds_another_one_running_is_retried(world, make, jobs, clock):
    await make().run_once()
    clock.ms += DAY_MS
    held = Deferred()

    async def work(_progress):
        await held
        return {"errors": []}

    uid = await jobs.begin(KIND, world.storage.uid, {}, work)
    await make().run_once()
    assert (await jobs.last(KIND, world.storage.uid)).uid == uid
    held.callback(None)
    await jobs.wait(uid)
    await make().run_once()
    assert (await jobs.last(KIND, world.storage.uid)).uid != uid


async def test_a_failed_collection_is_logged_and_retried(world, make, jobs, clock, monkeypatch):
    from pkgrepo.errors import StorageFailed

    daily = make()
    await daily.run_once()
    clock.ms += DAY_MS

    async def fail(_storage):
        raise StorageFailed("no disk")

    with monkeypatch.context() as patched:
        patched.setattr(world.stores, "of", fail)
        await daily.run_once()
    assert (await jobs.last(KIND, world.storage.uid)).state == "failed"
    await daily.run_once()
    assert (await jobs.last(KIND, world.storage.uid)).state == "done"


async def test_the_check_runs_every_hour_until_the_service_stops(make, monkeypatch):
    reactor = ReactorClock()
    runs = []

    async def count(_daily):
        runs.append(reactor.seconds())

    monkeypatch.setattr(DailyCollection, "run_once", count)
    daily = make(reactor)
    daily.startService()
    reactor.advance(EVERY_S)
    await daily.stopService()
    reactor.advance(EVERY_S)
    assert runs == [0, EVERY_S]


async def test_a_collection_that_a_backup_holds_off_is_retried(world, make, jobs, clock):
    info = await add_blob(world, b"loose")
    await make().run_once()
    clock.ms += 2 * DAY_MS
    held = Deferred()

    async def work(_progress):
        await held
        return {}

    await jobs.begin(BACKUP, BACKUP, {}, work)
    await make().run_once()
    assert (await jobs.last(KIND, world.storage.uid)).result["held"] == 1
    assert world.copies() == [info.locator]
    held.callback(None)
    await make().run_once()
    assert world.copies() == []
