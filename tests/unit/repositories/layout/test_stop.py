"""A stop completes the readable layout and writes its marker, which reindex reads."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime

import pytest
from twisted.internet.task import Clock

from pkgrepo.repositories.layout import follower, retries
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.layout.marker import MARKER, CatalogStatus, LayoutMarker, read_marker
from pkgrepo.repositories.layout.retries import Pace
from pkgrepo.repositories.layout.sidecars import encode
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.server import layout_pending, settings
from pkgrepo.storage.catalog.server.layout_pending import CURSOR, MARK, Entry
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.inprocess_server import until
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

WHEELS = [make_wheel(f"demo{number}", "1.0") for number in range(5)]
GRACE_S = 3600


@pytest.fixture
def batches(world):
    """Batches of one event."""
    world.follower.pace = Pace(batch=1)


async def publish(world):
    for each in WHEELS:
        await world.publish(*each)


async def lose_catalog(world, *, stopped=False):
    """The same folder with an empty catalog, and what comes back."""
    again = RepositoryServices(world.root, world.pools)
    await again.start(repository=False)
    return again, await again.reindex(stopped=stopped)


async def status(world):
    mark = read_marker(world.layout)
    return mark.catalogs[world.catalog.peek(settings.server_uid)]


def shown(world):
    return sum(place.endswith(".whl") for place in world.shown())


async def test_a_stop_handles_the_remaining_events(world, batches):
    await world.follower.mark_open()
    await world.follow()
    world.follower.stopService()
    await publish(world)
    assert shown(world) == 0
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert shown(world) == len(WHEELS)
    assert (await status(world)).missing == 0
    again, restored = await lose_catalog(world)
    assert (restored.versions, restored.problems, restored.notes) == (len(WHEELS), [], [])
    again.follower.stopService()


async def test_a_stop_makes_no_pauses(world):
    world.follower = LayoutFollower(world.context, Pace(batch=1, pause_s=3600, retry_page=1))
    await publish(world)
    await world.catalog.write(layout_pending.add_repositories, [world.repository.id])
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert shown(world) == len(WHEELS)
    assert (await world.follower.backlog()).behind == 0


async def test_a_stop_after_its_timeout_leaves_the_rest_to_the_next_start_and_logs_it(world, batches):
    await publish(world)
    await world.follower.catch_up_and_mark_closed(0)
    missing = len(WHEELS) - shown(world)
    assert missing > 0
    assert (await status(world)).missing >= missing
    again, restored = await lose_catalog(world)
    assert any("were not in the readable layout when a server stopped" in each for each in restored.problems)
    # Two blobs of each, the wheel and its metadata.
    assert any(each.startswith(f"{2 * missing} blobs of ") for each in restored.problems)
    again.follower.stopService()
    await world.follow()
    assert shown(world) == len(WHEELS)


async def test_reindex_reports_a_server_that_did_not_stop_cleanly(world):
    await world.follower.mark_open()
    await publish(world)
    again, restored = await lose_catalog(world)
    assert restored.versions == 0
    assert "marked no clean stop" in restored.problems[0]
    assert restored.problems[1].startswith(f"{2 * len(WHEELS)} blobs of ")
    again.follower.stopService()


async def test_blobs_of_deleted_files_are_no_problem_after_a_clean_stop(world):
    await publish(world)
    stray = world.root / "blobs" / "00" / ("0" * 64 + "." + "1" * 16)
    stray.write_bytes(b"stray")
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    again, restored = await lose_catalog(world)
    assert restored.problems == []
    assert restored.notes[0].startswith("1 blobs of 5 bytes in storage main")
    again.follower.stopService()


async def test_reindex_reports_a_layout_without_a_marker(world):
    await publish(world)
    await world.follow()
    again, restored = await lose_catalog(world)
    assert restored.versions == len(WHEELS)
    assert "has no mark" in restored.problems[0]
    again.follower.stopService()


async def test_a_status_is_about_its_own_catalog_only(world):
    """Somebody starts a server on the storage of a lost catalog, and stops it."""
    await world.follower.mark_open()
    await world.follow()  # shows the repository
    await publish(world)
    again = RepositoryServices(world.root, world.pools)
    await again.start(repository=False)
    await again.follower.mark_open()
    await again.follower.catch_up_and_mark_closed(GRACE_S)
    third, restored = await lose_catalog(again)
    assert "marked no clean stop" in restored.problems[0]
    third.follower.stopService()


async def test_a_process_that_stops_keeps_the_open_status_of_a_later_one(world):
    """As when a new server is started before the old one is stopped."""
    newer = RepositoryServices(world.root, world.pools, world.catalog)
    await world.follower.mark_open()
    await newer.follower.mark_open()
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert (await status(world)).missing is None
    await newer.follower.catch_up_and_mark_closed(GRACE_S)
    assert (await status(world)).missing == 0


async def test_a_catalog_that_knows_all_folders_replaces_the_statuses_of_others(world):
    await publish(world)
    await world.follow()
    lost = CatalogStatus(at=datetime.now(UTC))
    world.layout.write(MARKER, encode(LayoutMarker(catalogs={"lost": lost})))
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert len(read_marker(world.layout).catalogs) == 1


async def test_the_marker_is_removed_when_it_cannot_be_written_at_the_start(world, monkeypatch):
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert (await status(world)).missing == 0
    replace = os.replace

    def full(source, target):
        if str(target).endswith(MARKER):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    await world.follower.mark_open()
    assert read_marker(world.layout) is None


async def test_a_deleted_repository_counts_as_possibly_missing(world):
    """Bytes that another copy has are not missing."""
    await world.publish(*make_sdist("demo", "1.0"))
    (copy,) = world.copies()
    twin = world.root / "blobs" / (copy.rpartition(".")[0] + "." + "1" * 16)
    twin.write_bytes((world.root / "blobs" / copy).read_bytes())
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    again, restored = await lose_catalog(world)
    assert (restored.problems, restored.notes) == ([], [])
    again.follower.stopService()


FIRST, SECOND = make_wheel("first", "1.0"), make_wheel("second", "1.0")


@pytest.fixture
def clock(world, monkeypatch):
    """The follower's time, with pauses of no length."""
    found = Clock()
    for module in (follower, retries):
        monkeypatch.setattr(module, "IReactorTime", lambda _reactor: found)
    world.follower.pace = Pace(pause_s=0, max_pause_s=0)
    return found


@pytest.fixture
def syncs(monkeypatch):
    """The values of cursor and mark when the file system was synced; with ``fails`` in it, that fails."""
    calls = []

    def sync(_layout):
        calls.append(None)
        if "fails" in calls:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(LayoutFolder, "sync_all", sync)
    return calls


def places(world):
    """The number of the last event, the cursor and the mark."""
    cursor, mark = (int(world.catalog.peek(settings.get, key) or 0) for key in (CURSOR, MARK))
    return world.catalog.peek(events.last_seq), cursor, mark


def crash(world):
    """A process that begins after the last one was killed."""
    world.follower._close()
    world.follower = LayoutFollower(world.context, world.follower.pace)


def lose(world):
    """What a power cut does to files that were not synced: empty documents, and names that are missing."""
    emptied = 0
    for place in world.shown():
        path = world.layout.file(place)
        if place.endswith(".json"):
            path.write_bytes(b"")
            emptied += 1
        elif place.endswith(".whl"):
            path.unlink()
    return emptied


async def missing(world):
    (status,) = read_marker(world.layout).catalogs.values()
    return status.missing


async def test_a_start_mends_what_was_lost_since_the_mark(world):
    await world.follower.mark_open()
    for wheel in (FIRST, SECOND):
        await world.publish(*wheel)
    await world.follow()
    shown = world.shown()
    last, cursor, mark = places(world)
    assert cursor == last > mark
    crash(world)
    assert lose(world)
    assert len((await world.verify()).problems) >= 4
    await world.follow()
    assert world.shown() == shown
    assert (await world.verify()).problems == []
    await world.stop()
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert (places(world), await missing(world)) == ((last, last, last), 0)


async def test_a_stop_before_all_is_compared_again_marks_nothing_complete(world, monkeypatch):
    async def no_time(_follower):
        """Handle no events."""

    await world.follower.mark_open()
    await world.publish(*FIRST)
    await world.follow()
    last, _, mark = places(world)
    crash(world)
    lose(world)
    with monkeypatch.context() as patch:
        patch.setattr(LayoutFollower, "_handle_events", no_time)
        await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert await missing(world) == last - mark > 0
    crash(world)
    await world.follow()
    assert (await world.verify()).problems == []


async def test_after_a_clean_stop_nothing_is_compared_again(world, syncs, monkeypatch):
    await world.follower.mark_open()
    await world.publish(*FIRST)
    await world.follow()
    assert syncs == []  # no publish waits for the disk
    await world.stop()
    assert len(syncs) == 1
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert len(syncs) == 2  # documents of repositories have no events
    crash(world)
    handled = []
    monkeypatch.setattr(LayoutFollower, "_show_batch", lambda *given: handled.append(given))
    await world.follow()
    assert handled == []


async def test_a_layout_that_cannot_be_synced_is_neither_marked_nor_complete(world, syncs):
    await world.follower.mark_open()
    await world.publish(*FIRST)
    await world.follow()
    before = places(world)
    syncs.append("fails")
    await world.stop()
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert (places(world), await missing(world)) == (before, None)


async def test_after_a_failed_sync_no_later_one_moves_the_mark(world, clock, syncs):
    await world.follower.mark_open()
    await world.publish(*FIRST)
    await world.follow()
    before = places(world)
    syncs.append("fails")
    clock.advance(world.follower.pace.mark_after_s)
    await until(lambda: clock.advance(0) or world.follower._following is None)
    syncs.clear()  # the disk works again
    await world.publish(*SECOND)
    await world.follow()
    clock.advance(world.follower.pace.mark_after_s)
    await world.stop()
    await world.follower.catch_up_and_mark_closed(GRACE_S)
    assert places(world)[2] == before[2]
    assert places(world)[1] > before[1]
    assert await missing(world) is None


async def test_a_command_beside_a_server_leaves_the_mark_and_compares_nothing_again(world, syncs, monkeypatch):
    world.follower.pace = Pace(mark_events=1)
    await world.publish(*FIRST)
    await world.follow()
    await world.catalog.write(settings.put, MARK, "0")
    await world.publish(*SECOND)
    syncs.clear()
    handled = []
    show = LayoutFollower._show_batch

    async def counted(self, batch):
        handled.extend(each.package_key for each in batch)
        return await show(self, batch)

    monkeypatch.setattr(LayoutFollower, "_show_batch", counted)
    await LayoutFollower(world.context, world.follower.pace).catch_up()
    last, cursor, mark = places(world)
    assert (cursor, mark, set(handled), syncs) == (last, 0, {"second"}, [])


async def test_the_mark_follows_some_time_after_a_change(world, clock, syncs):
    await world.publish(*FIRST)
    await world.follow()
    clock.advance(world.follower.pace.mark_after_s - 1)
    assert syncs == []
    clock.advance(1)
    await until(lambda: clock.advance(0) or world.follower._following is None)
    last, cursor, mark = places(world)
    assert (cursor, mark, len(syncs)) == (last, last, 1)
    assert clock.getDelayedCalls() == []


async def test_the_mark_follows_after_many_events(world, syncs):
    world.follower.pace = Pace(batch=1, mark_events=2)
    for wheel in (FIRST, SECOND):
        await world.publish(*wheel)
    await world.follow()
    last, _, mark = places(world)
    assert last - mark < 2
    assert syncs


async def test_pending_entries_are_durable_before_they_are_forgotten(world, syncs, monkeypatch):
    await world.publish(*FIRST)
    await world.follow()
    entry = Entry(world.repository.id, "first", "1", "1.0")
    await world.catalog.write(layout_pending.record_attempts, (), {entry: "busy"})
    order = []
    monkeypatch.setattr(LayoutFolder, "sync_all", lambda _layout: order.append("sync"))
    forget = layout_pending.record_attempts
    monkeypatch.setattr(layout_pending, "record_attempts", lambda *given: order.append("forget") or forget(*given))
    crash(world)
    await world.follow()
    assert order[:2] == ["sync", "forget"]
    assert not (await world.follower.backlog()).failed


async def test_a_catalog_of_an_earlier_release_is_marked_as_it_is(world):
    await world.publish(*FIRST)
    await world.follow()
    await world.catalog.write(lambda tx: tx.execute("DELETE FROM setting WHERE key = ?", (MARK,)) and None)
    crash(world)
    await world.follow()
    last, cursor, mark = places(world)
    assert (cursor, mark) == (last, last)
