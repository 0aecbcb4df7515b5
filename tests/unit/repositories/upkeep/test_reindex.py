"""Reindex: what is restored from the readable layout, and what must not be."""

import errno
import os

import pytest
from attrs import evolve

from pkgrepo.errors import StorageFailed
from pkgrepo.model import SYSTEM, Actor, VersionState
from pkgrepo.repositories.publish.package_changes import remove_files, set_package_meta, set_version_state
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.files import has_tombstone
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.admission import admitted
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

WHEEL = make_wheel("Demo.Pkg", "1.0")
SDIST = make_sdist("Demo.Pkg", "1.0")
PLACE = "py/demo-pkg/1.0"
PATH = f"packages/demo-pkg/1.0/{SDIST[0]}"


@pytest.fixture
def again(world):
    """An empty catalog on the same folder."""
    return RepositoryServices(world.root, world.pools)


async def build(again, **how):
    await again.start(repository=False)
    return await again.reindex(**how)


def copy_of(world, path=PATH):
    """The stored copy of a file."""
    found = world.catalog.peek(files.find_file, world.repository.id, path)
    return world.root / "blobs" / found.locator


def cut(path):
    """Lose the last byte."""
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size - 1)


def detach(world, place):
    """Make a file of the layout a copy of its own, as where links were refused."""
    path = world.layout.file(place)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


async def test_a_truncated_copy_is_not_restored(world, again):
    await world.publish(*SDIST)
    await world.publish(*make_wheel("other", "1.0"))
    await world.follow()
    cut(copy_of(world))
    restored = await build(again)
    assert (restored.versions, restored.files) == (1, 2)
    assert f"main: {PLACE}/demo-pkg-1.0.json: " in restored.problems[0]
    assert again.catalog.peek(files.find_file, again.repository.id, PATH) is None


async def test_a_truncated_copy_is_replaced_by_the_bytes_in_the_layout(world, again):
    await world.publish(*SDIST)
    await world.follow()
    detach(world, f"{PLACE}/{SDIST[0]}")
    cut(copy_of(world))
    restored = await build(again)
    assert (restored.versions, restored.problems) == (1, [])
    assert copy_of(again).read_bytes() == SDIST[1]


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"x" + data[1:]])
async def test_bytes_of_the_layout_are_checked_by_digest(world, again, change):
    await world.publish(*SDIST)
    await world.follow()
    path = world.layout.file(f"{PLACE}/{SDIST[0]}")
    path.unlink()
    path.write_bytes(change(SDIST[1]))
    copy_of(world).unlink()
    restored = await build(again)
    assert restored.versions == 0
    assert f"main: {PLACE}/demo-pkg-1.0.json: " in restored.problems[0]


async def test_all_fields_of_a_version_are_restored(world, again):
    await world.publish(*WHEEL, actor=Actor(name="ada"))
    await world.publish(*SDIST, actor=Actor(name="bob"))
    await world.publish(*make_sdist("Demo.Pkg", "2.0"), actor=Actor(name="bob"))
    change, py, index = world.content.change, world.repository, world.format.index
    await change(set_version_state, py, "demo-pkg", "1", VersionState.YANKED, "broken", admitted(py), index)
    await change(set_package_meta, py, "demo-pkg", {"status": "archived"}, admitted(py), index)
    await change(remove_files, py, "demo-pkg", "2", None, SYSTEM, index, True)
    await world.follow()
    again.clock.ms += 10**9
    restored = await build(again)
    assert (restored.repositories, restored.versions, restored.files, restored.problems) == (1, 1, 3, [])
    found, kept = (packages.find_package(each.catalog.tx, each.repository.id, "demo-pkg") for each in (again, world))
    for name in ("key", "name", "meta", "created_at", "updated_at"):
        assert getattr(found, name) == getattr(kept, name), name
    (version,), (original,) = (
        each.catalog.peek(versions.list_versions, package.id) for each, package in ((again, found), (world, kept))
    )
    for name in ("key", "text", "sort", "state", "reason", "meta", "published_at", "publisher"):
        assert getattr(version, name) == getattr(original, name), name
    for file, stored in zip(
        again.catalog.peek(files.files_of_version, version.id),
        world.catalog.peek(files.files_of_version, original.id),
        strict=True,
    ):
        for name in ("path", "locator", "sha256", "size", "media_type", "digests", "attrs", "created_at"):
            assert getattr(file, name) == getattr(stored, name), name
    burned = f"packages/demo-pkg/2.0/{make_sdist('Demo.Pkg', '2.0')[0]}"
    assert again.catalog.peek(has_tombstone, again.repository.id, burned)
    problems = (await again.verify()).problems
    assert [each for each in problems if "no row names" not in each] == []  # the copy of what was deleted


async def test_all_fields_of_a_repository_are_restored(world, again):
    values = {
        "visibility": "hidden",
        "active": False,
        "description": "ours",
        "config": {"type": "Hosted", "x": 1},
        "settings": {"y": 2},
    }
    await world.catalog.write(
        repositories.update_repository, world.repository.id, now_ms=world.clock.now_ms(), **values
    )
    await world.follow()
    again.clock.ms += 10**9
    restored = await build(again)
    assert (restored.repositories, restored.problems) == (1, [])
    kept = world.repository
    for name in ("uid", "name", "format", "type", "created_at", *values):
        assert getattr(again.repository, name) == getattr(kept, name), name


async def test_objects_in_the_catalog_are_not_changed(world):
    await world.publish(*WHEEL)
    await world.follow()
    await world.catalog.write(
        repositories.update_repository, world.repository.id, now_ms=world.clock.now_ms(), description="newer"
    )
    change, index = world.content.change, world.format.index
    await change(
        set_version_state,
        world.repository,
        "demo-pkg",
        "1",
        VersionState.YANKED,
        "new",
        admitted(world.repository),
        index,
    )
    commits = world.catalog.peek(lambda r: r.all("SELECT * FROM version"))
    restored = await world.reindex()
    assert (restored.repositories, restored.versions, restored.files, restored.problems) == (0, 0, 0, [])
    assert world.repository.description == "newer"
    assert world.catalog.peek(lambda r: r.all("SELECT * FROM version")) == commits


async def test_invalid_sidecars_are_reported_and_the_rest_is_restored(world, again):
    await world.publish(*WHEEL)
    await world.publish(*make_wheel("other", "1.0"))
    await world.add_repository("strange")
    await world.follow()
    world.layout.write(f"{PLACE}/demo-pkg-1.0.json", b"{}")
    world.layout.write("py/broken/.package.json", b"[")
    world.layout.write("nobody/x/1.0/x-1.0.json", b"{}")
    sidecar = world.layout.read("strange/.repository.json").replace(b'"python"', b'"cobol"')
    world.layout.write("strange/.repository.json", sidecar)
    restored = await build(again)
    assert restored.versions == 1
    told = {
        each.split(": ")[1]: each.split(": ", 2)[2] for each in restored.problems if "belong to nothing" not in each
    }
    assert set(told) == {
        f"{PLACE}/demo-pkg-1.0.json",
        "py/broken/.package.json",
        "nobody/x/1.0/x-1.0.json",
        "strange/.repository.json",
    }
    assert told["nobody/x/1.0/x-1.0.json"] == "its repository has no sidecar"
    assert told["strange/.repository.json"] == "no format is called 'cobol'"


async def test_a_companion_is_restored_with_its_parent_beside_a_package_of_its_name(world, again):
    companion = await world.add_repository("py/conda", parent_id=world.repository.id)
    await world.publish(*make_wheel("conda", "1.0"))
    await world.publish(*make_wheel("conda", "2.0"), where=companion)
    await world.follow()
    assert {place.split("/")[0] for place in world.shown()} >= {"py", "py.conda"}
    assert (await build(again)).problems == []
    restored = again.registry.find("main", "py/conda")
    assert (restored.uid, restored.parent) == (companion.uid, again.repository)
    for repository, version in ((restored, "2.0"), (again.repository, "1.0")):
        package = again.catalog.peek(packages.find_package, repository.id, "conda")
        assert again.catalog.peek(versions.version_texts, package.id) == [version]
    await again.follow()
    await again.catalog.write(repositories.remove_repository, again.repository.id, now_ms=0)
    await again.follow()
    assert not [place for place in again.shown() if place.startswith("py")]


async def test_a_storage_that_cannot_be_opened_does_not_block_others(world, again, monkeypatch):
    await world.publish(*WHEEL)
    await world.follow()
    await again.start(repository=False)
    real, other = again.stores.of, evolve(again.storage, id=77, name="away", uid="away")
    both = [other, again.storage]
    monkeypatch.setattr(again.registry, "storages", lambda: both)

    async def of(storage):
        if storage.name == "away":
            raise StorageFailed("away")
        return await real(storage)

    monkeypatch.setattr(again.stores, "of", of)
    restored = await again.reindex()
    assert restored.versions == 1
    assert restored.problems[0].startswith("storage 'away' cannot be opened: ")


async def test_unreadable_sidecars_are_reported_and_the_rest_is_restored(world, again, monkeypatch):
    for name in ("aaa", "bbb", "ccc"):
        await world.publish(*make_sdist(name, "1.0"))
    await world.follow()
    scandir, read = os.scandir, LayoutFolder.read

    def list_folder(path):
        if str(path).endswith("py/aaa"):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return scandir(path)

    def read_document(layout, path):
        if path == "py/bbb/1.0/bbb-1.0.json":
            raise OSError(errno.EIO, "Input/output error")
        return read(layout, path)

    monkeypatch.setattr(os, "scandir", list_folder)
    monkeypatch.setattr(LayoutFolder, "read", read_document)
    restored = await build(again)
    assert restored.versions == 1
    assert restored.problems[:2] == [
        "main: py/aaa: Input/output error",
        "main: py/bbb/1.0/bbb-1.0.json: Input/output error",
    ]
