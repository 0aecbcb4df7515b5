"""Entries that could not be shown in the readable layout are stored as pending, logged and retried."""

import errno
import os
from functools import partial

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.layout import follower, retries
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.layout.retries import Pace
from pkgrepo.storage.catalog.server import layout_pending, repositories
from pkgrepo.storage.catalog.server.layout_pending import Entry
from tests.support.inprocess_server import until
from tests.support.python_packages import make_sdist, make_wheel

MARK_AFTER_S = 1e6  # longer than any delay of retries
FIRST = make_wheel("first", "1.0")
SECOND = make_wheel("second", "1.0")


class FullDisk:
    """Lets nothing more into the layout while it is ``full``."""

    def __init__(self, monkeypatch, layout):
        self.full = False
        self._root = str(layout.root)
        for name in ("link", "replace"):
            monkeypatch.setattr(os, name, partial(self._unless_full, getattr(os, name)))

    def _unless_full(self, act, source, target, **options):
        if self.full and str(target).startswith(self._root):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        act(source, target, **options)


@pytest.fixture
def disk(world, monkeypatch):
    return FullDisk(monkeypatch, world.layout)


@pytest.fixture
def clock(world, monkeypatch):
    """The follower's time, with pauses of no length."""
    found = Clock()
    monkeypatch.setattr(follower, "IReactorTime", lambda _reactor: found)
    monkeypatch.setattr(retries, "IReactorTime", lambda _reactor: found)
    world.follower.pace = Pace(pause_s=0, max_pause_s=0, mark_after_s=MARK_AFTER_S)
    return found


async def run(world, clock, seconds=0):
    """Let time pass, and the follower come to rest; what the layout does not show then."""
    clock.advance(seconds)

    def rests():
        clock.advance(0)
        return world.follower._following is None

    await until(rests)
    return await world.follower.backlog()


async def follow(world, clock):
    """Have the follower look for changes, and come to rest."""
    if world.follower.running:
        world.follower.notify()
    else:
        world.follower.startService()
    return await run(world, clock)


def is_shown(world, wheel):
    name = wheel[0].split("-")[0]
    return f"py/{name}/1.0/{wheel[0]}" in world.shown()


async def test_entries_that_failed_on_a_full_disk_are_retried_until_shown(world, disk, clock):
    await world.publish(*FIRST)
    await follow(world, clock)
    disk.full = True
    await world.publish(*SECOND)
    backlog = await follow(world, clock)
    assert not is_shown(world, SECOND)
    assert (backlog.events, backlog.waiting, backlog.failed) == (0, 0, {world.storage.id: 2})
    assert backlog.reason == "No space left on device"
    assert (await run(world, clock, world.follower.pace.retry_s)).failed
    disk.full = False
    backlog = await run(world, clock, 2 * world.follower.pace.retry_s)
    assert is_shown(world, SECOND)
    assert not backlog.failed
    assert (await world.verify()).problems == []
    assert [each.getTime() for each in clock.getDelayedCalls()] == [MARK_AFTER_S]


async def test_the_next_start_retries_pending_entries(world, disk, clock):
    disk.full = True
    await world.publish(*FIRST)
    assert (await follow(world, clock)).failed == {world.storage.id: 3}  # the repository's own document, too
    world.follower.stopService()
    disk.full = False
    assert not (await follow(world, clock)).failed
    assert is_shown(world, FIRST)
    assert "py/.repository.json" in world.shown()


async def test_retries_back_off_and_are_hastened_when_the_disk_has_room_again(world, disk, clock):
    await follow(world, clock)
    disk.full = True
    await world.publish(*FIRST)
    await follow(world, clock)
    waits = []
    for _ in range(8):
        waits.append(clock.getDelayedCalls()[0].getTime() - clock.seconds())
        await run(world, clock, waits[-1])
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]
    disk.full = False
    await world.publish(*SECOND)
    await follow(world, clock)
    assert not (await run(world, clock, world.follower.pace.retry_s)).failed
    assert is_shown(world, FIRST)


async def test_entries_that_always_fail_do_not_block_others(world, clock):
    world.follower = LayoutFollower(world.context, evolve(world.follower.pace, retry_page=1))
    await world.publish(*FIRST)
    for path in world.copies():
        (world.root / "blobs" / path).unlink()
    await world.catalog.write(
        layout_pending.record_attempts, (), {Entry(world.repository.id, "zzz", "1", "1.0"): "busy"}
    )
    backlog = await follow(world, clock)
    assert backlog.failed == {world.storage.id: 1}
    await world.publish(*SECOND)
    await follow(world, clock)
    assert is_shown(world, SECOND)


async def test_the_cursor_stays_while_failures_cannot_be_recorded(world, disk, clock, monkeypatch):
    await follow(world, clock)
    disk.full = True
    await world.publish(*FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(world.catalog, "write", refuse)
        backlog = await follow(world, clock)
        assert (backlog.events, backlog.failed) == (1, {})
    disk.full = False
    backlog = await run(world, clock, world.follower.pace.retry_s)
    assert (backlog.events, backlog.failed) == (0, {})
    assert is_shown(world, FIRST)


async def refuse(*_):
    raise StorageFull("catalog")


async def test_a_storage_that_cannot_be_opened_blocks_only_its_own_entries(world, clock, monkeypatch):
    await world.publish(*FIRST)

    async def fail(_storage):
        raise StorageFailed("main")

    with monkeypatch.context() as patch:
        patch.setattr(world.stores, "of", fail)
        backlog = await follow(world, clock)
        assert (backlog.events, backlog.failed) == (0, {world.storage.id: 2})
    assert not (await run(world, clock, world.follower.pace.retry_s)).failed
    assert is_shown(world, FIRST)


async def test_packages_marked_for_comparison_are_repaired(world, clock):
    for each in (FIRST, SECOND, make_sdist("second", "2.0")):
        await world.publish(*each)
    await follow(world, clock)
    shown = world.shown()
    for place in shown[2:]:
        world.layout.remove(place)
    await world.catalog.write(layout_pending.add_repositories, [world.repository.id])
    assert (await world.follower.backlog()).waiting == 3
    world.follower.stopService()
    backlog = await follow(world, clock)
    assert (world.shown(), backlog.waiting) == (shown, 0)


async def test_a_folder_that_could_not_be_removed_is_retried_and_its_successor_is_complete(world, clock, monkeypatch):
    await world.publish(*FIRST)
    await follow(world, clock)
    await world.catalog.write(
        repositories.remove_repository, world.repository.id, now_ms=world.clock.now_ms(), purge=True, actor=SYSTEM
    )
    rename = os.rename

    def busy(source, target):
        if str(source).endswith("/py"):
            raise OSError(errno.EBUSY, "busy")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", busy)
        await follow(world, clock)
        await world.add_repository("py")
        await world.publish(*SECOND)
        assert (await follow(world, clock)).failed == {world.storage.id: 1}
    assert is_shown(world, FIRST)
    backlog = await run(world, clock, world.follower.pace.retry_s)
    backlog = await run(world, clock, world.follower.pace.retry_s) if backlog.waiting else backlog
    assert (is_shown(world, FIRST), is_shown(world, SECOND), backlog.failed) == (False, True, {})
    assert (await world.verify()).problems == []
