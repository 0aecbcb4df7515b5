"""Gems in the readable layout: where files and sidecars are, yanks, leftovers, and a catalog that is rebuilt."""

from __future__ import annotations

import pytest_twisted

from pkgrepo.formats.rubygems.format import ruby
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.push.requests import make_release, read_gem
from pkgrepo.model import SYSTEM, VersionState
from pkgrepo.repositories.publish.package_changes import remove_files, set_version_state
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, versions
from tests.support.admission import admitted
from tests.support.gems import make_gem
from tests.support.repositories import RepositoryServices, chunks


class RubyServices(RepositoryServices):
    """A storage with the repository ``main/rb``."""

    def __init__(self, root, pools):
        super().__init__(root, pools, format=ruby(), name="rb")

    async def push(self, name, version, platform="ruby", attestations=b""):
        data = make_gem(name, version, platform=platform)
        gem = read_gem(data)
        async with self.content.stage(self.repository) as staged:
            blob = await staged.receive(chunks(data))
            release = await make_release(staged, blob, gem, attestations)
            await self.content.publish(self.repository, release, staged, admitted(self.repository), apply_change)

    async def set_state(self, name, version, state):
        await self.content.change(
            set_version_state, self.repository, name, version, state, "", admitted(self.repository), apply_change
        )

    async def remove(self, name, version):
        await self.content.change(remove_files, self.repository, name, version, None, SYSTEM, apply_change, True)


@pytest_twisted.async_yield_fixture
async def world(tmp_path, pools):
    found = RubyServices(tmp_path / "store", pools)
    await found.start()
    yield found
    await found.stop()


def files_of(name, version, *, hidden=False, attested=False):
    prefix = "yanked/" if hidden else ""
    full = f"{name}-{version}"
    return ({f"{prefix}gems/{full}.gem.attestations"} if attested else set()) | {
        f"{prefix}gems/{full}.gem",
        f"{prefix}quick/Marshal.4.8/{full}.gemspec.rz",
        f"specs/{name}/{version}/{full}.json",
        f"specs/{name}/.package.json",
    }


async def test_gems_are_in_one_folder_and_yanked_ones_in_another(world):
    await world.push("a", "1.0")
    await world.push("gems", "1.0", "java")  # a name of a folder
    await world.follow()
    expected = {".repository.json"} | files_of("a", "1.0") | files_of("gems", "1.0-java")
    assert world.shown_of_repository() == expected
    await world.set_state("a", "1.0", VersionState.YANKED)
    await world.follow()
    hidden = {".repository.json"} | files_of("a", "1.0", hidden=True) | files_of("gems", "1.0-java")
    assert world.shown_of_repository() == hidden
    await world.set_state("a", "1.0", VersionState.LIVE)
    await world.follow()
    assert world.shown_of_repository() == expected
    assert (await world.verify()).layout_changes == 0


async def test_attestations_are_where_their_gem_is(world):
    await world.push("a", "1.0", attestations=b"[{}]")
    await world.follow()
    assert world.shown_of_repository() == {".repository.json"} | files_of("a", "1.0", attested=True)
    await world.set_state("a", "1.0", VersionState.YANKED)
    await world.follow()
    assert world.shown_of_repository() == {".repository.json"} | files_of("a", "1.0", hidden=True, attested=True)
    assert (await world.verify()).layout_changes == 0
    await world.remove("a", "1.0")
    await world.follow()
    assert world.shown_of_repository() == {".repository.json", "specs/a/.burned.json"}


async def test_removed_versions_leave_nothing_but_their_burned_names(world):
    await world.push("a", "1.0")
    await world.push("a", "2.0")
    await world.set_state("a", "1.0", VersionState.YANKED)
    await world.follow()
    await world.remove("a", "1.0")
    await world.remove("a", "2.0")
    await world.follow()
    assert world.shown_of_repository() == {".repository.json", "specs/a/.burned.json"}


async def test_leftovers_are_removed_by_a_repair(world):
    await world.push("a", "1.0")
    await world.follow()
    for place in ("rb/gems/b-1.0.gem", "rb/yanked/gems/a-1.0.gem", "rb/other/x"):
        world.layout.write(place, b"left behind")
    assert (await world.verify(repair=True)).mended == 3
    assert (await world.verify()).layout_changes == 0
    assert world.shown_of_repository() == {".repository.json"} | files_of("a", "1.0")


async def test_a_lost_catalog_is_rebuilt_with_states_and_indexes(world, tmp_path, pools):
    before = world
    for version, platform in (("1.0", "ruby"), ("1.1", "ruby"), ("1.1", "java")):
        await before.push("a", version, platform, attestations=b"[{}]")
    await before.push("b", "1.0")
    for name, version in (("a", "1.1"), ("b", "1.0")):
        await before.set_state(name, version, VersionState.YANKED)
    await before.follow()
    await before.stop()
    after = RubyServices(tmp_path / "store", pools)
    await after.start(repository=False)
    report = await after.reindex()
    assert report.problems == []
    assert (report.repositories, report.versions, report.files) == (1, 4, 11)
    for name in ("a", "b"):
        assert documents(after, name) == documents(before, name)
    await after.follow()
    await after.stop()
    assert set(after.shown_of_repository()) == set(before.shown_of_repository())


def documents(world, name):
    def read(reader):
        package = packages.find_package(reader, world.repository.id, name)
        states = [(each.key, each.state, each.published_at) for each in versions.list_versions(reader, package.id)]
        return states, sorted(each.body for each in index_documents.list_fragments(reader, package.id, INFO))

    return world.catalog.peek(read)
