"""Conda packages in the readable layout: where files and sidecars are, leftovers, and a catalog that is rebuilt."""

from __future__ import annotations

import pytest_twisted

from pkgrepo.formats.conda.files import DIGESTS, Upload, make_release
from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.conda.index.packages import index_package, read_all
from pkgrepo.formats.conda.names import parse_file_name
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.repositories.publish_policy import PublishPolicy
from pkgrepo.storage.catalog.packages.files import find_file
from pkgrepo.storage.catalog.server import layout_pending, settings
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.admission import admitted
from tests.support.conda_packages import make_conda
from tests.support.repositories import RepositoryServices, chunks


class CondaServices(RepositoryServices):
    """A storage with the repository ``main/ch``."""

    def __init__(self, root, pools):
        super().__init__(root, pools, format=conda(), name="ch")

    async def push(self, name, version, build="py_0"):
        data = make_conda(name, version, build, documents={"run_exports.json": {"weak": [name]}})
        async with self.content.stage(self.repository) as staged:
            blob = await staged.receive(chunks(data), algorithms=DIGESTS)
            file = parse_file_name(f"{name}-{version}-{build}.conda")
            release = make_release(Upload(file, "noarch", blob), read_package(data, file), PublishPolicy())
            await self.content.publish(self.repository, release, staged, admitted(self.repository), index_package)

    async def remove(self, name, version, paths=None):
        await self.content.change(remove_files, self.repository, name, version, paths, SYSTEM, self.format.index, True)


@pytest_twisted.async_yield_fixture
async def world(tmp_path, pools):
    found = CondaServices(tmp_path / "store", pools)
    await found.start()
    yield found
    await found.stop()


def files_of(name, version, *builds):
    return {f"noarch/{name}-{version}-{build}.conda" for build in builds} | {
        f"packages/{name}/{version}/{name}-{version}.json",
        f"packages/{name}/.package.json",
    }


async def test_packages_are_in_the_folders_of_a_channel_until_they_are_removed(world):
    await world.push("a", "1.0", "0")
    await world.push("a", "1.0", "1")
    await world.push("packages", "2.0")
    await world.follow()
    others = {".repository.json"} | files_of("packages", "2.0", "py_0")
    assert world.shown_of_repository() == others | files_of("a", "1.0", "0", "1")
    await world.remove("a", "1.0", ["noarch/a-1.0-1.conda"])
    await world.follow()
    assert world.shown_of_repository() == others | files_of("a", "1.0", "0") | {"packages/a/.burned.json"}
    assert (await world.verify()).layout_changes == 0
    await world.remove("a", "1.0")
    await world.follow()
    assert world.shown_of_repository() == others | {"packages/a/.burned.json"}


async def test_leftovers_are_removed_by_a_repair(world):
    await world.push("a", "1.0")
    await world.follow()
    for place in ("ch/noarch/b-1.0-0.conda", "ch/packages/b/1.0/b-1.0.json", "ch/other/x"):
        world.layout.write(place, b"left behind")
    assert (await world.verify(repair=True)).mended == 3
    assert (await world.verify()).layout_changes == 0
    assert world.shown_of_repository() == {".repository.json"} | files_of("a", "1.0", "py_0")


async def test_a_link_whose_sidecar_a_power_cut_has_lost_is_removed_at_the_next_start(world):
    await world.push("a", "1.0", "0")
    await world.push("a", "1.0", "1")
    await world.push("b", "1.0")
    await world.follow()
    file = world.catalog.peek(find_file, world.repository.id, "noarch/b-1.0-py_0.conda")
    await world.remove("a", "1.0", ["noarch/a-1.0-1.conda"])
    await world.remove("b", "1.0")
    world.layout.remove("ch/packages/b/1.0/b-1.0.json")
    await world.follow()
    assert "noarch/b-1.0-py_0.conda" in world.shown_of_repository()  # nothing knows of it
    await world.follower.stopService()
    await world.catalog.write(settings.put, layout_pending.MARK, "0")  # nothing was made durable
    await world.follow()
    kept = files_of("a", "1.0", "0") | {f"packages/{each}/.burned.json" for each in "ab"}
    assert world.shown_of_repository() == {".repository.json"} | kept
    assert world.layout.shows(file.locator) is False
    assert (await world.verify()).layout_changes == 0


async def test_a_lost_catalog_is_rebuilt_with_its_records(world, tmp_path, pools):
    await world.push("a", "1.0", "0")
    await world.push("a", "1.10", "0")
    await world.push("b", "1.0")
    await world.follow()
    before = await world.catalog.scan(read_all, world.repository.id)
    await world.stop()
    after = CondaServices(tmp_path / "store", pools)
    await after.start(repository=False)
    report = await after.reindex()
    assert report.problems == []
    assert (report.repositories, report.versions, report.files) == (1, 3, 3)
    assert await after.catalog.scan(read_all, after.repository.id) == before
    await after.stop()


async def test_a_file_is_gone_for_good_before_the_sidecar_that_knows_of_it(world, monkeypatch):
    await world.push("a", "1.0", "0")
    await world.push("a", "1.0", "1")
    await world.follow()
    done = []

    def noted(name, original):
        def call(folder, path, *more):
            done.append((name, path.removeprefix("ch/")))
            return original(folder, path, *more)

        return call

    for each in ("remove", "sync_folder", "write"):
        monkeypatch.setattr(LayoutFolder, each, noted(each, getattr(LayoutFolder, each)))
    await world.remove("a", "1.0", ["noarch/a-1.0-1.conda"])
    await world.follow()
    sidecar = "packages/a/1.0/a-1.0.json"
    assert [each for each in done if each[1] in ("noarch/a-1.0-1.conda", "noarch", sidecar)] == [
        ("remove", "noarch/a-1.0-1.conda"),
        ("sync_folder", "noarch"),
        ("write", sidecar),
    ]
    done.clear()
    await world.remove("a", "1.0")
    await world.follow()
    assert [each for each in done if each[1] in ("noarch/a-1.0-0.conda", "noarch", sidecar)] == [
        ("remove", "noarch/a-1.0-0.conda"),
        ("sync_folder", "noarch"),
        ("remove", sidecar),
    ]
