"""The readable layout of a storage can be switched off and on."""

import pytest

from pkgrepo.repositories.layout.marker import MARKER, read_marker
from pkgrepo.repositories.layout.sidecars import REPOSITORY
from pkgrepo.storage.catalog.server import storages
from tests.support.python_packages import make_wheel
from tests.support.repositories import RepositoryServices

WHEELS = [make_wheel(name, "1.0") for name in ("one", "two")]


async def switch(world, *, on):
    settings = {**world.storage.settings, "readable_layout": on}
    await world.catalog.write(storages.update_storage, world.storage.id, settings=settings, now_ms=world.clock.now_ms())


@pytest.fixture
def again(world):
    """A world with an empty catalog on the same folder."""
    return RepositoryServices(world.root, world.pools)


async def test_a_storage_without_a_layout_keeps_all_blobs(world):
    await switch(world, on=False)
    await world.publish(*WHEELS[0])
    await world.follow()
    assert world.shown() == []
    assert len(world.copies()) == 2
    report = await world.verify()
    assert report.problems == []
    assert "reindex cannot bring back what the storage holds" in report.notes[0]


async def test_a_layout_is_removed_when_switched_off_and_written_again_when_switched_on(world):
    for each in WHEELS:
        await world.publish(*each)
    await world.follow()
    shown = world.shown()
    assert len(shown) == 9
    await switch(world, on=False)
    await world.follow()
    assert (world.shown(), read_marker(world.layout).kept) == ([], False)
    assert len(world.copies()) == 4
    await switch(world, on=True)
    await world.follow()
    assert world.shown() == shown
    assert not (world.layout.root / MARKER).exists()  # nothing is known of it before the next stop
    await world.follower.catch_up_and_mark_closed(60)
    assert read_marker(world.layout).kept


async def test_the_folder_of_a_new_repository_is_removed_before_its_own_document_is_shown(world):
    await world.publish(*WHEELS[0])
    await world.follow()
    [own] = world.layout.root.glob(f"*/{REPOSITORY}")
    own.unlink()
    await switch(world, on=False)
    await world.follow()
    assert world.shown() == []


async def test_folders_of_unknown_repositories_stay(world, again):
    """They are what a lost catalog can be built from."""
    await world.publish(*WHEELS[0])
    await world.follow()
    shown = world.shown()
    await again.start(repository=False)
    await again.add_repository("py")
    await switch(again, on=False)
    await again.follow()
    assert again.shown() == shown
    again.follower.stopService()


async def test_reindex_reports_that_a_storage_without_a_layout_cannot_be_restored(world, again):
    await switch(world, on=False)
    await world.publish(*WHEELS[0])
    await world.follow()
    await again.start(repository=False)
    await switch(again, on=False)
    restored = await again.reindex(stopped=False)
    assert restored.versions == 0
    assert "reindex cannot bring back what the storage holds" in restored.problems[0]
    assert restored.problems[1].startswith("2 blobs of ")
