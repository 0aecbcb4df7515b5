"""Burned names of deleted files are in the readable layout and are restored from it."""

import pytest

from pkgrepo.errors import FileBurned
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.layout.sidecars import BurnedSidecar, decode
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.files import has_tombstone, tombstones_of_package
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.catalog import MemoryCatalog
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

WHEEL = make_wheel("demo", "1.0")
SDIST = make_sdist("demo", "2.0")
PATH = f"packages/demo/1.0/{WHEEL[0]}"
BURNED = "py/demo/.burned.json"


async def remove(world, version, *, burn=True):
    await world.publisher.change(
        remove_files, world.repository, "demo", version, None, SYSTEM, world.format.index, burn
    )


async def rebuilt(world, tmp_path, pools):
    """Another world over the same files, its catalog built from them."""
    again = RepositoryServices(tmp_path / "store", pools, MemoryCatalog())
    await again.start(repository=False)
    restored = await again.reindex()
    assert restored.problems == []
    return again


def burned(world):
    return world.catalog.peek(tombstones_of_package, world.repository.id, "demo")


@pytest.mark.parametrize("others", [False, True])
async def test_a_burned_name_survives_the_removal_of_the_package_and_a_reindex(world, tmp_path, pools, others):
    await world.publish(*WHEEL)
    if others:
        await world.publish(*SDIST)
    await remove(world, "1")
    await world.follow()
    sidecar = decode(world.layout.read(BURNED), BurnedSidecar, "here")
    assert (sidecar.package, [each.path for each in sidecar.files]) == ("demo", [PATH, f"{PATH}.metadata"])
    assert (await world.verify()).problems == []
    again = await rebuilt(world, tmp_path, pools)
    assert burned(again) == burned(world)
    other = make_wheel("demo", "1.0", pad=1)
    with pytest.raises(FileBurned):
        await again.publish(*other)
    await again.publish(*WHEEL, reuse=True)
    assert again.catalog.peek(files.find_file, again.repository.id, PATH) is not None
    await again.reindex()
    assert not again.catalog.peek(has_tombstone, again.repository.id, PATH)  # the name is in use


async def test_a_name_that_is_not_burned_leaves_no_sidecar(world):
    await world.publish(*WHEEL)
    await remove(world, "1", burn=False)
    await world.follow()
    assert world.shown() == ["py/.repository.json"]


async def test_a_name_that_was_published_again_is_not_burned(world):
    await world.publish(*WHEEL)
    await remove(world, "1")
    await world.follow()
    assert BURNED in world.shown()
    await world.publish(*WHEEL, reuse=True)
    await world.follow()
    assert BURNED not in world.shown()
    assert (await world.verify()).problems == []


async def test_verify_repairs_the_sidecar_of_burned_names(world):
    await world.publish(*WHEEL)
    await remove(world, "1")
    await world.follow()
    before = world.layout.read(BURNED)
    world.layout.remove(BURNED)
    world.layout.write("py/other/.burned.json", b"{}")
    assert len((await world.verify()).problems) == 2
    assert (await world.verify(repair=True)).problems == []
    assert world.shown() == ["py/.repository.json", BURNED]
    assert world.layout.read(BURNED) == before


async def test_the_package_sidecar_is_written_once_for_many_removed_versions(world, monkeypatch):
    for number in range(5):
        await world.publish(*make_sdist("demo", f"{number}.0"))
    await world.follow()
    for number in range(4):
        await remove(world, str(number))
    written = []
    write = LayoutFolder.write
    monkeypatch.setattr(LayoutFolder, "write", lambda *args: (written.append(args[1]), write(*args)))
    await world.follow()
    assert sorted(written) == [BURNED, "py/demo/.package.json"]
    assert len(burned(world)) == 4
    assert [each.split("/")[2] for each in world.layout.walk("py/demo") if "/." not in each] == ["4.0", "4.0"]
    assert (await world.verify()).problems == []
