"""Garbage collection: grace period, disk errors, and leftovers of crashes."""

import pytest
from attrs import evolve

from pkgrepo.errors import StorageFailed
from pkgrepo.repositories.upkeep.gc import GarbageCollector, GcOptions
from pkgrepo.storage.catalog.blobs import blobs, gc
from tests.support.python_packages import make_wheel
from tests.support.repositories import NOW

GRACE_S = 900


class StillClock:
    """A clock that stands where it was set."""

    def __init__(self, now_ms):
        self.ms = now_ms

    def now_ms(self):
        return self.ms


@pytest.fixture
def clock():
    return StillClock(NOW)


@pytest.fixture
def collector(world, clock):
    return GarbageCollector(evolve(world.context, clock=clock), on_change=world.poked.append)


async def add_blob(world, data):
    """Bytes that the storage has at C{NOW} and that nothing refers to."""
    async with world.store.begin() as upload:
        upload.write(data)
        info = await upload.commit()
    return await world.catalog.write(blobs.claim_blob, world.storage.id, info, NOW)


def run(collector, world, **options):
    return collector.run(world.storage, world.registry.all(), GcOptions(grace_s=GRACE_S, **options))


@pytest.mark.parametrize("dry_run", [True, False])
async def test_the_grace_period_ends_to_the_millisecond(world, collector, clock, dry_run):
    info = await add_blob(world, b"loose")
    clock.ms = NOW + GRACE_S * 1000
    kept = await run(collector, world, dry_run=dry_run)
    assert (kept.blobs, kept.freed, kept.young, kept.young_until_ms) == (0, 0, 1, NOW + GRACE_S * 1000)
    clock.ms += 1
    gone = await run(collector, world, dry_run=dry_run)
    assert (gone.blobs, gone.freed, gone.young) == (1, len(b"loose"), 0)
    assert world.copies() == ([info.locator] if dry_run else [])


async def test_a_blob_that_was_used_since_stays(world, collector, clock):
    info = await add_blob(world, b"loose")
    clock.ms = NOW + GRACE_S * 1000 + 1
    assert await world.catalog.write(blobs.touch_blob, world.storage.id, info.sha256, clock.ms)
    assert (await run(collector, world)).blobs == 0
    assert world.copies() == [info.locator]


async def test_blobs_that_files_refer_to_stay(world, collector, clock):
    await world.publish(*make_wheel("demo", "1.0"))
    before = world.copies()
    clock.ms = 2 * NOW
    report = await run(collector, world)
    assert (report.blobs_seen, report.blobs, world.copies()) == (2, 0, before)


async def test_bytes_that_cannot_be_removed_are_left_to_the_next_run(world, collector, clock, monkeypatch):
    infos = [await add_blob(world, data) for data in (b"one", b"two")]
    clock.ms = 2 * NOW
    delete, asked = world.store.delete, []

    async def resist(locator):
        asked.append(locator)
        assert len(asked) < 10, "a run asks again and again"
        if locator == infos[0].locator:
            raise StorageFailed("main")
        await delete(locator)

    monkeypatch.setattr(world.store, "delete", resist)
    report = await run(collector, world)
    assert (report.blobs, report.freed) == (1, 3)
    (problem,) = report.errors
    assert problem.startswith(f"blob {infos[0].sha256}: ")
    assert world.copies() == [infos[0].locator]
    assert world.catalog.peek(gc.list_deleting, world.storage.id) == [infos[0]]
    assert len((await run(collector, world)).errors) == 1
    monkeypatch.undo()
    again = await run(collector, world)
    assert (again.blobs, again.errors, world.copies()) == (1, [], [])
    assert world.count("blob") == 0


async def test_a_dry_run_removes_no_leftovers_of_a_crash(world, collector, clock):
    info = await add_blob(world, b"loose")
    await world.catalog.write(gc.mark_deleting, world.storage.id, [info.sha256], NOW + 1, NOW)
    assert (await run(collector, world, dry_run=True)).blobs == 0
    assert world.copies() == [info.locator]
    assert (await run(collector, world)).blobs == 1  # condemned before, whatever the grace time is now
    assert world.copies() == []
