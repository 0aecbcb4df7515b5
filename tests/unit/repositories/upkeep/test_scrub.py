"""All that is stored is read once in so many days, and what is damaged is replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import evolve
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import IBlobStore
from pkgrepo.repositories.upkeep import mending
from pkgrepo.repositories.upkeep.mending import Mender
from pkgrepo.repositories.upkeep.scrub import DAY_MS, EVERY_S, PART, Mending, Scrub
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.catalog.blobs import blobs
from tests.support.repositories import NOW
from tests.unit.repositories.upkeep.test_gc import StillClock, add_blob
from tests.unit.repositories.upkeep.test_verify import damage, state

DAYS = 10


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def scrub(world: Any, clock: StillClock) -> Scrub:
    context = evolve(world.context, clock=clock)
    return Scrub(context, mender=Mender(context), days=DAYS, reactor=ReactorClock())


def read(world: Any) -> list[str]:
    """The digests of blobs that were read."""
    rows = world.catalog.peek(lambda r: r.all("SELECT sha256 FROM blob WHERE verified_at IS NOT NULL"))
    return sorted(row[0].hex() for row in rows)


async def test_the_pace_is_that_of_time(world: Any, scrub: Scrub, clock: StillClock) -> None:
    wanted = sorted([(await add_blob(world, b"blob %d" % n)).sha256 for n in range(200)])
    await scrub.run_once()
    assert read(world) == []
    clock.ms += DAYS * DAY_MS // 4
    await scrub.run_once()
    assert read(world) == [each for each in wanted if int(each[:2], 16) < 64]
    clock.ms += DAYS * DAY_MS
    await scrub.run_once()
    assert read(world) == wanted


async def test_it_goes_on_after_a_restart_and_begins_again_at_the_end(
    world: Any, clock: StillClock, scrub: Scrub
) -> None:
    context = evolve(world.context, clock=clock)
    info = await add_blob(world, b"one")
    await scrub.run_once()
    clock.ms += DAYS * DAY_MS
    again = Scrub(context, mender=Mender(context), days=DAYS, reactor=ReactorClock())
    await again.run_once()
    assert read(world) == [info.sha256]
    damage(world.root / "blobs" / info.locator)
    await again.run_once()
    assert state(world, info.sha256) == "live"
    clock.ms += DAYS * DAY_MS
    await again.run_once()
    assert state(world, info.sha256) == "suspect"


async def test_it_leaves_time_for_others(world: Any, clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    reactor = ReactorClock()
    scrub = Scrub(evolve(world.context, clock=clock), mender=Mender(world.context), days=DAYS, reactor=reactor)
    for n in range(300):
        await add_blob(world, b"blob %d" % n)
    await scrub.run_once()
    clock.ms += DAYS * DAY_MS
    opened = world.store.open

    def slow(locator: str) -> Any:
        reactor.advance(EVERY_S * PART / 100)
        return opened(locator)

    monkeypatch.setattr(world.store, "open", slow)
    counts = []
    for _ in range(4):
        await scrub.run_once()
        counts.append(len(read(world)))
    assert counts == [128, 256, 300, 300]


def spare(store: IBlobStore | None) -> Callable[[], Any]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[IBlobStore | None]:
        yield store

    return opened


async def test_damaged_bytes_are_taken_from_a_backup(world: Any, clock: StillClock, tmp_path: Any) -> None:
    backup = FilesystemBlobStore(tmp_path / "backup", name="backup", pools=world.pools)
    await backup.start()
    info, context = await add_blob(world, b"precious"), evolve(world.context, clock=clock)
    damage(world.root / "blobs" / info.locator)
    scrub = Scrub(context, mender=Mender(context, spare(backup)), days=DAYS, reactor=ReactorClock())
    await scrub.run_once()
    clock.ms += DAYS * DAY_MS
    await scrub.run_once()
    assert state(world, info.sha256) == "suspect"
    async with backup.begin(8) as upload:
        upload.write(b"precious")
        await upload.commit({"sha256": info.sha256}, 8)
    await Mending(context, mender=Mender(context, spare(backup)), reactor=ReactorClock()).run_once()
    assert state(world, info.sha256) == "live"
    found = world.catalog.peek(lambda r: blobs.find_blob(r, world.storage.id, info.sha256))
    assert await world.store.open(found.locator).read(0, 8) == b"precious"


async def test_a_backup_that_is_damaged_too_is_no_help(world: Any, clock: StillClock, tmp_path: Any) -> None:
    backup = FilesystemBlobStore(tmp_path / "backup", name="backup", pools=world.pools)
    await backup.start()
    async with backup.begin(8) as upload:
        upload.write(b"precious")
        kept = await upload.commit({}, 8)
    damage(tmp_path / "backup" / "blobs" / kept.locator)
    info, context = await add_blob(world, b"precious"), evolve(world.context, clock=clock)
    damage(world.root / "blobs" / info.locator)
    mender = Mender(context, spare(backup))
    await Scrub(context, mender=mender, days=DAYS, reactor=ReactorClock()).run_once()
    clock.ms += DAYS * DAY_MS
    await Scrub(context, mender=mender, days=DAYS, reactor=ReactorClock()).run_once()
    assert state(world, info.sha256) == "suspect"
    assert world.copies() == [info.locator]


async def test_it_waits_for_a_storage_that_is_away(world: Any, clock: StillClock, scrub: Scrub) -> None:
    infos = [await add_blob(world, b"blob %d" % n) for n in range(3)]
    await scrub.run_once()
    clock.ms += DAYS * DAY_MS
    away = world.root.with_name("away")
    world.root.rename(away)
    await scrub.run_once()
    world.root.mkdir()  # what an unmounted disk leaves
    await scrub.run_once()
    assert {state(world, each.sha256) for each in infos} == {"live"}
    assert read(world) == []
    world.root.rmdir()
    away.rename(world.root)
    await scrub.run_once()
    assert read(world) == sorted(each.sha256 for each in infos)


async def test_what_this_process_cannot_read_is_passed_over(
    world: Any, clock: StillClock, scrub: Scrub, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted([await add_blob(world, b"one"), await add_blob(world, b"two")], key=lambda each: each.sha256)
    await scrub.run_once()
    clock.ms += DAYS * DAY_MS
    opened = world.store.open

    def open_some(locator: str) -> Any:
        if locator == first.locator:
            raise StorageFailed("main") from PermissionError(13, "Permission denied")
        return opened(locator)

    monkeypatch.setattr(world.store, "open", open_some)
    await scrub.run_once()
    assert read(world) == [second.sha256]
    assert state(world, first.sha256) == "live"


async def test_all_that_are_marked_are_tried_and_those_that_are_sound_are_served_again(
    world: Any, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mending, "PAGE", 2)
    context = evolve(world.context, clock=clock)
    infos = [await add_blob(world, b"blob %d" % n) for n in range(7)]
    for each in infos:
        await world.catalog.write(blobs.mark_suspect, world.storage.id, each.sha256, each.locator)
    for each in infos[:3]:
        damage(world.root / "blobs" / each.locator)
    assert await Mender(context).try_again(world.storage) == 4
    assert [state(world, each.sha256) for each in infos] == ["suspect"] * 3 + ["live"] * 4
