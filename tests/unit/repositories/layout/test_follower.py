"""The follower keeps the readable layout equal to the catalog."""

import errno
import os

from attrs import evolve
from twisted.internet.defer import maybeDeferred
from twisted.logger import globalLogPublisher

from pkgrepo.model import SYSTEM, RepositoryType, VersionState
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.layout.retries import PAUSE_FACTOR, Pace
from pkgrepo.repositories.layout.sidecars import PackageSidecar, RepositorySidecar, VersionSidecar, decode
from pkgrepo.repositories.layout.updater import open_writer
from pkgrepo.repositories.layout.writer import FileLayoutWriter
from pkgrepo.repositories.publish.package_changes import remove_files, set_package_meta, set_version_state
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.layout_pending import CURSOR
from tests.support.admission import admitted
from tests.support.inprocess_server import no_failures, until
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

WHEEL = make_wheel("Demo.Pkg", "1.0+x")
DIRECTORY = "py/demo-pkg/1.0+x"
SIDECAR = f"{DIRECTORY}/demo-pkg-1.0+x.json"


async def remove(world, paths=None):
    await world.content.change(
        remove_files, world.repository, "demo-pkg", "1+x", paths, SYSTEM, world.format.index, False
    )


async def test_a_version_shows_its_files_and_sidecars(world):
    await world.publish(*WHEEL)
    await world.follow()
    assert world.shown() == [
        "py/.repository.json",
        "py/demo-pkg/.package.json",
        SIDECAR,
        f"{DIRECTORY}/{WHEEL[0]}",
        f"{DIRECTORY}/{WHEEL[0]}.metadata",
    ]
    file = world.catalog.peek(files.find_file, world.repository.id, f"packages/demo-pkg/1.0+x/{WHEEL[0]}")
    assert world.layout.file(f"{DIRECTORY}/{WHEEL[0]}").read_bytes() == WHEEL[1]
    assert os.path.samefile(world.layout.file(f"{DIRECTORY}/{WHEEL[0]}"), world.root / "blobs" / file.locator)
    version = decode(world.layout.read(SIDECAR), VersionSidecar, "here")
    assert (version.package, version.key, version.version, version.state) == ("demo-pkg", "1+x", "1.0+x", "live")
    assert version.files[0].locator == file.locator
    assert version.files[0].created_at == file.created_at
    package = decode(world.layout.read("py/demo-pkg/.package.json"), PackageSidecar, "here")
    assert (package.key, package.name) == ("demo-pkg", "Demo.Pkg")
    repository = decode(world.layout.read("py/.repository.json"), RepositorySidecar, "here")
    assert (repository.uid, repository.format) == (world.repository.uid, "python")


async def test_changes_are_followed(world):
    await world.publish(*WHEEL)
    await world.follow()
    change = world.content.change
    await change(
        set_version_state,
        world.repository,
        "demo-pkg",
        "1+x",
        VersionState.YANKED,
        "bad",
        admitted(world.repository),
        world.format.index,
    )
    await change(
        set_package_meta,
        world.repository,
        "demo-pkg",
        {"status": "archived"},
        admitted(world.repository),
        world.format.index,
    )
    await world.follow()
    version = decode(world.layout.read(SIDECAR), VersionSidecar, "here")
    assert (version.state, version.reason) == ("yanked", "bad")
    package = decode(world.layout.read("py/demo-pkg/.package.json"), PackageSidecar, "here")
    assert package.meta == {"status": "archived"}


async def test_deleted_files_are_removed_with_empty_directories(world):
    await world.publish(*WHEEL)
    await world.publish(*make_sdist("Demo.Pkg", "1.0+x"))
    await world.follow()
    await remove(world, [f"packages/demo-pkg/1.0+x/{WHEEL[0]}", f"packages/demo-pkg/1.0+x/{WHEEL[0]}.metadata"])
    await world.follow()
    assert world.shown() == [
        "py/.repository.json",
        "py/demo-pkg/.package.json",
        SIDECAR,
        f"{DIRECTORY}/demo_pkg-1.0+x.tar.gz",
    ]
    await remove(world)
    await world.follow()
    assert world.shown() == ["py/.repository.json", "py/demo-pkg/.burned.json"]


async def test_a_version_published_again_in_another_spelling_leaves_no_old_directory(world):
    await world.publish(*make_wheel("Demo", "1.0.0"))
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
    await world.publish(*make_wheel("Demo", "1.0"))
    await world.follow()
    assert {place.split("/")[2] for place in world.shown() if place.count("/") > 2} == {"1.0"}


async def test_files_whose_names_spell_their_version_in_another_way_belong_to_it(world):
    await world.publish(*make_wheel("Demo", "1.0"))
    await world.publish(*make_wheel("Demo", "1.0.0"))
    await world.follow()
    folders = {place.split("/")[2] for place in world.shown() if place.count("/") > 2}
    assert folders == {"1.0", "1.0.0"}
    assert (await world.verify()).problems == []
    shown = world.shown()
    assert (await world.verify(repair=True)).mended == 0
    assert world.shown() == shown
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
    await world.follow()
    assert [place for place in world.shown() if place.count("/") > 1 and place.endswith(".whl")] == []


async def test_events_may_be_handled_twice_and_late(world):
    await world.publish(*WHEEL)
    await remove(world)
    await world.publish(*WHEEL)
    await world.follow()
    shown = world.shown()
    await world.catalog.write(settings.put, CURSOR, "0")
    await world.follow()
    assert world.shown() == shown
    assert (await world.verify()).problems == []


async def test_nothing_is_written_when_nothing_happened(world):
    await world.publish(*WHEEL)
    await world.follow()
    commits = world.catalog.commits
    await world.follow()
    assert world.catalog.commits == commits


async def test_a_missing_blob_is_logged_and_the_rest_is_shown(world):
    await world.publish(*WHEEL)
    for path in world.copies():
        (world.root / "blobs" / path).unlink()
    await world.publish(*make_wheel("other", "1.0"))
    events = []
    globalLogPublisher.addObserver(events.append)
    await world.follow()
    globalLogPublisher.removeObserver(events.append)
    assert [event["package"] for event in events if "reason" in event] == ["demo-pkg"]
    assert any(path.startswith("py/other/1.0/") for path in world.shown())


async def test_entries_that_failed_for_lack_of_descriptors_are_retried(world, monkeypatch):
    show, refusals = FileLayoutWriter.show, [OSError(errno.EMFILE, "too many open files")] * 3

    def starving(*args):
        if refusals:
            raise refusals.pop()
        return show(*args)

    monkeypatch.setattr(FileLayoutWriter, "show", starving)
    world.follower = LayoutFollower(world.context, Pace(retry_s=0))
    await world.publish(*WHEEL)
    with no_failures():
        world.follower.startService()
        await until(lambda: not refusals and world.follower._following is None)
    assert f"{DIRECTORY}/{WHEEL[0]}" in world.shown()


async def test_accumulated_changes_are_shown_by_one_call_in_a_thread(world, monkeypatch):
    for number in range(5):
        await world.publish(*make_wheel("demo", f"1.{number}"))
        await world.publish(*make_wheel("other", f"1.{number}"))
    disk, calls = world.pools.disk, []

    def counting(func, *args):
        calls.append(func.__name__)
        return disk(func, *args)

    monkeypatch.setattr(world.pools, "disk", counting)
    await world.follow()
    assert calls == ["read_marker", "show_repository", "_show"]
    assert [path for path in world.shown() if path.endswith(".whl")] == [
        f"py/{name}/1.{number}/{name}-1.{number}-py3-none-any.whl" for name in ("demo", "other") for number in range(5)
    ]


async def test_events_that_arrive_while_a_batch_runs_are_handled(world):
    await world.publish(*WHEEL)
    world.follower.startService()
    await world.publish(*make_wheel("other", "1.0"))
    world.follower.notify()
    await world.follower._following
    assert "py/other/1.0/other-1.0-py3-none-any.whl" in world.shown()


async def test_stopping_does_not_wait_for_more_changes(world):
    world.follower.pace = Pace(pause_s=3600)
    await world.publish(*WHEEL)
    world.follower.startService()
    world.follower.notify()
    await until(lambda: world.follower._pausing is not None)
    await maybeDeferred(world.follower.stopService)
    assert f"{DIRECTORY}/{WHEEL[0]}" in world.shown()


async def test_changes_of_a_proxy_are_shown_when_it_is_quiet(world):
    proxy = evolve(world.repository, type=RepositoryType.PROXY)
    await world.follow()
    await world.publish(*WHEEL)
    for _ in range(3):
        world.follower.notify(proxy)
    assert world.follower._following is None, "an install may go on"
    world.follower.pace = Pace(quiet_s=0)
    world.follower.notify(proxy)
    await until(lambda: f"{DIRECTORY}/{WHEEL[0]}" in world.shown() and world.follower._following is None)


async def test_changes_of_a_proxy_that_is_never_quiet_are_shown_in_the_end(world):
    proxy = evolve(world.repository, type=RepositoryType.PROXY)
    await world.follow()
    await world.publish(*WHEEL)
    world.follower.pace = Pace(quiet_s=3600, longest_quiet_s=0)
    world.follower.notify(proxy)
    assert world.follower._following is None
    world.follower.notify(proxy)
    await until(lambda: f"{DIRECTORY}/{WHEEL[0]}" in world.shown() and world.follower._following is None)


async def test_a_stop_shows_what_waits_for_quiet(world):
    await world.follow()
    await world.publish(*WHEEL)
    world.follower.notify(evolve(world.repository, type=RepositoryType.PROXY))
    await maybeDeferred(world.follower.stopService)
    await world.follower.catch_up_and_mark_closed(60)
    assert f"{DIRECTORY}/{WHEEL[0]}" in world.shown()


def test_the_pause_grows_with_the_duration_of_a_round():
    pace = Pace()
    assert pace.pause_after(0.001) == pace.pause_s
    assert pace.pause_after(1.0) == PAUSE_FACTOR
    assert pace.pause_after(3600) == pace.max_pause_s


async def test_a_repository_whose_storage_was_just_removed_has_no_writer(world):
    gone = evolve(world.repository, storage_id=world.repository.storage_id + 1)
    assert await open_writer(world.context, gone) is None


async def test_files_with_the_longest_names_are_shown_and_restored(world):
    """The companions of a file whose name is as long as names may be have longer names."""
    name = "n" * (255 - len("-1.0-py3-none-any.whl"))
    await world.publish(*make_wheel(name, "1.0"))
    await world.publish(*make_wheel("demo", "1.0+" + "x" * 220))
    await world.follow()
    assert len(world.shown()) == 1 + 2 * 4
    assert not (await world.follower.backlog()).failed
    assert (await world.verify()).problems == []
    again = RepositoryServices(world.root, world.pools)
    await again.start(repository=False)
    restored = await again.reindex()
    assert (restored.versions, restored.files, restored.problems) == (2, 4, [])
    assert (await again.verify()).problems == []
