"""The readable layout of a storage can be switched off and on."""

import os

import pytest
from twisted.logger import globalLogPublisher

from pkgrepo.model import SYSTEM
from pkgrepo.repositories.layout.marker import MARKER, read_marker
from pkgrepo.repositories.layout.sidecars import REPOSITORY
from pkgrepo.storage.catalog.server import repositories, settings, storages
from pkgrepo.storage.catalog.server.layout_pending import CURSOR
from pkgrepo.storage.catalog.server.purge import purge_repository
from tests.support.admission import admitted
from tests.support.python_packages import make_sdist, make_wheel
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


OLD = make_sdist("old", "1.0")
NEW = make_sdist("new", "1.0")
SHOWN_NEW = ["py/.repository.json", "py/new/.package.json", "py/new/1.0/new-1.0.json", f"py/new/1.0/{NEW[0]}"]


async def remove(world):
    """Remove the repository for good; what it was."""
    removed = world.repository
    await world.catalog.write(
        repositories.remove_repository, removed.id, now_ms=world.clock.now_ms(), purge=True, actor=SYSTEM
    )
    return removed


async def purge(world, removed):
    while await world.catalog.write(purge_repository, removed.id):
        pass


@pytest.mark.parametrize("purged", [False, True])
async def test_the_folder_of_a_removed_repository_is_removed(world, purged):
    await world.publish(*OLD)
    await world.add_repository("other")
    await world.follow()
    removed = await remove(world)
    if purged:
        await purge(world, removed)
    await world.follow()
    assert world.shown() == ["other/.repository.json"]
    assert not world.layout.file("py").exists()


async def test_a_repository_removed_before_it_was_shown_leaves_no_folder(world):
    await world.publish(*OLD)
    await remove(world)
    await world.follow()
    assert world.shown() == []


async def test_only_the_successor_with_the_same_name_is_shown(world):
    await world.publish(*OLD)
    await world.follow()
    await purge(world, await remove(world))
    await world.add_repository("py")
    await world.publish(*NEW)
    await world.follow()
    assert world.shown() == SHOWN_NEW
    assert (await world.verify()).problems == []
    await world.catalog.write(settings.put, CURSOR, "0")  # a crash, and all is followed again
    await world.follow()
    assert world.shown() == SHOWN_NEW


async def test_an_upload_that_ends_after_the_removal_is_not_shown(world):
    await world.publish(*OLD)
    await world.follow()
    repository = world.repository
    async with world.content.stage(repository) as staged:
        release = await world.release(staged, *NEW)
        await remove(world)
        with pytest.raises(Exception, match="repository"):
            await world.content.publish(repository, release, staged, admitted(repository), world.format.index)
    await world.follow()
    assert world.shown() == []


async def test_a_removal_before_a_stop_is_handled_by_the_next_start(world):
    await world.publish(*OLD)
    await world.follow()
    await world.follower.stopService()
    await purge(world, await remove(world))
    assert "py/.repository.json" in world.shown()
    await world.follow()
    assert world.shown() == []


async def test_a_folder_of_an_unknown_repository_is_kept(world):
    await world.publish(*OLD)
    await world.follow()
    await remove(world)
    sidecar = world.layout.read("py/.repository.json").replace(b'"uid": "', b'"uid": "another-')
    world.layout.write("py/.repository.json", sidecar)  # as after a step back to an older catalog
    await world.follow()
    assert f"py/old/1.0/{OLD[0]}" in world.shown()


async def test_a_folder_that_cannot_be_removed_is_logged_and_found_by_verify(world, monkeypatch):
    await world.publish(*OLD)
    await world.add_repository("other")
    await world.follow()
    await remove(world)
    rename, told = os.rename, []

    def refuse(source, target):
        if str(source).endswith("/py"):
            raise OSError(16, "busy")
        rename(source, target)

    globalLogPublisher.addObserver(told.append)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        await world.publish(*NEW, where=world.registry.find("main", "other"))
        await world.follow()
    globalLogPublisher.removeObserver(told.append)
    assert [event["reason"] for event in told if "reason" in event] == ["busy"]
    assert f"other/new/1.0/{NEW[0]}" in world.shown()
    found = await world.verify()
    assert found.problems == ["main: the readable layout still has the folder py of a removed repository"]
    assert (await world.verify(repair=True)).problems == []
    assert not world.layout.file("py").exists()
    assert (await world.verify()).problems == []
