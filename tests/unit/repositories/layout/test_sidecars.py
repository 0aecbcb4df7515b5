"""Sidecars are read as they were written."""

import json
from datetime import UTC, datetime

import pytest
from attrs import evolve

from pkgrepo.errors import FileBurned, Invalid
from pkgrepo.model import SYSTEM, Package, RepositoryType, Version, VersionState, Visibility
from pkgrepo.repositories.layout.sidecars import (
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    RepositorySidecar,
    VersionSidecar,
    decode,
    encode,
)
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.packages.files import has_tombstone, tombstones_of_package
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.repositories import RepositoryServices

AT = datetime(2026, 2, 3, 4, 5, 6, 789000, UTC)
PACKAGE = Package(
    id=1,
    repository_id=1,
    key="ü",
    name="Ü",
    latest=None,
    serial=3,
    meta={"status": "x"},
    created_at=AT,
    updated_at=AT,
    modified_s=round(AT.timestamp()),
)
TAGS = {"latest": "1.0"}
VERSION = Version(
    id=1,
    package_id=1,
    key="1",
    text="1.0",
    sort=b"\x00\xff",
    state=VersionState.YANKED,
    reason="</script>",
    meta={"nested": [1, {"a": None}]},
    published_at=AT,
    publisher="alice",
)


@pytest.fixture
def repository():
    found = MemoryCatalog().do(add_repository)
    return evolve(
        found,
        visibility=Visibility.PRIVATE,
        type=RepositoryType.HOSTED,
        active=False,
        description="ours",
        settings={"policy": {"allow_overwrite": True}},
    )


@pytest.fixture
def file():
    catalog = MemoryCatalog()
    return catalog.do(publish, catalog.do(add_repository), "packages/demo/1.0/demo.whl")


def test_every_sidecar_survives_the_round_trip(repository, file):
    entry = FileSidecar.of(file, "py/demo/1.0/demo.whl")
    for sidecar in (
        RepositorySidecar.of(repository),
        PackageSidecar.of(PACKAGE, TAGS),
        VersionSidecar.of(PACKAGE, VERSION, [entry]),
    ):
        assert decode(encode(sidecar), type(sidecar), "here") == sidecar


def test_a_version_with_its_file_keeps_what_a_rebuilt_catalog_needs(file):
    told = json.loads(encode(VersionSidecar.of(PACKAGE, VERSION, [FileSidecar.of(file, "place")])))
    assert (told["state"], told["reason"], told["publisher"]) == ("yanked", "</script>", "alice")
    assert told["published_at"] == "2026-02-03T04:05:06.789000Z"
    [entry] = told["files"]
    assert (entry["path"], entry["sha256"], entry["size"]) == (file.path, file.sha256, file.size)


def test_equal_sidecars_are_written_alike_and_indented(repository):
    data = encode(RepositorySidecar.of(repository))
    assert data == encode(RepositorySidecar.of(repository))
    assert data.endswith(b"}\n")
    assert b'\n "name": "py",\n' in data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"key": 1, "name": "x", "meta": {}}', b"\xff"])
def test_an_invalid_sidecar_is_refused_with_its_place(data):
    with pytest.raises(Invalid, match=r"py/demo/\.package\.json"):
        decode(data, PackageSidecar, "py/demo/.package.json")


def test_unknown_fields_are_ignored():
    data = encode(PackageSidecar.of(PACKAGE, TAGS)).replace(b'"key"', b'"of_tomorrow": [1],\n "key"')
    assert decode(data, PackageSidecar, "here") == PackageSidecar.of(PACKAGE, TAGS)


WHEEL = make_wheel("demo", "1.0")
SDIST = make_sdist("demo", "2.0")
PATH = f"packages/demo/1.0/{WHEEL[0]}"
BURNED = "py/demo/.burned.json"


async def remove(world, version, *, burn=True):
    await world.content.change(remove_files, world.repository, "demo", version, None, SYSTEM, world.format.index, burn)


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


async def test_the_name_of_a_removed_package_is_retired_again_after_a_reindex(world, tmp_path, pools):
    await world.publish(*WHEEL)
    await remove(world, "1", burn=False)
    await world.follow()
    assert world.shown() == ["py/.repository.json", BURNED]
    assert (await world.verify()).problems == []
    again = await rebuilt(world, tmp_path, pools)
    [before] = world.catalog.peek(packages.list_retired, world.repository.id)
    assert again.catalog.peek(packages.list_retired, again.repository.id) == [before]
    assert burned(again) == []
    await again.reindex()
    assert again.catalog.peek(packages.list_retired, again.repository.id) == [before]
    await again.publish(*WHEEL)
    await again.reindex()
    assert again.catalog.peek(packages.list_retired, again.repository.id) == [], "a package has the name"


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
