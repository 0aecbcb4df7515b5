"""A stop completes the readable layout and writes its marker, which reindex reads."""

import errno
import os
from datetime import UTC, datetime

import pytest

from pkgrepo.repositories.layout import follower, retries
from pkgrepo.repositories.layout.marker import MARKER, CatalogStatus, LayoutMarker, read_marker
from pkgrepo.repositories.layout.sidecars import encode
from pkgrepo.storage.catalog.server import layout_pending, settings
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

WHEELS = [make_wheel(f"demo{number}", "1.0") for number in range(5)]
GRACE_S = 3600


@pytest.fixture
def batches(monkeypatch):
    """Batches of one event."""
    monkeypatch.setattr(follower, "BATCH", 1)


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


async def test_a_stop_makes_no_pauses(world, batches, monkeypatch):
    monkeypatch.setattr(follower, "PAUSE_S", 3600)
    monkeypatch.setattr(retries, "PAGE", 1)
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
