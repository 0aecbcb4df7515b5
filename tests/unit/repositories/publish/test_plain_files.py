"""Plain files are put and removed in one transaction with usage, serial and event."""

import pytest
from attrs import evolve

from pkgrepo.errors import Conflict, FileExists, NotFound, ReadOnly
from pkgrepo.model import SYSTEM, NewFile, RepositoryType
from pkgrepo.repositories.publish.plain_files import put_plain_file, remove_plain_file
from pkgrepo.storage.catalog.packages import events, files
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.python_packages import make_wheel
from tests.support.repositories import chunks

WHEEL = make_wheel("demo", "1.0")


async def put(world, path, data, *, overwrite=True, guard=None):
    async with world.content.stage(world.repository) as staged:
        blob = await staged.receive(chunks(data))
        return await world.content.change_with_blobs(
            put_plain_file,
            world.repository,
            staged,
            [blob],
            NewFile(path=path, blob=blob),
            overwrite,
            admitted(world.repository),
            guard,
        )


async def remove(world, path):
    return await world.content.change(remove_plain_file, world.repository, path, SYSTEM)


def state(world):
    found = world.catalog.peek(repositories.get_repository, world.repository.id)
    return found.bytes_used, found.package_count, found.serial


def happened(world):
    return [(e.kind, e.package_key, e.data["path"]) for e in world.catalog.peek(events.events_after, 0, 99)]


def find(world, path):
    return world.catalog.peek(files.find_file, world.repository.id, path)


async def test_a_put_adds_a_row_usage_serial_and_event(world):
    result = await put(world, "notes/read.txt", b"hello")
    assert (result.changed, result.replaced) == (True, False)
    assert result.file == find(world, "notes/read.txt")
    assert (result.file.package_id, result.file.version_id) == (None, None)
    assert state(world) == (5, 0, 1)
    assert happened(world) == [("published", "", "notes/read.txt")]
    assert world.poked == [world.repository]
    assert world.copies() == [result.file.locator]


async def test_the_same_bytes_again_change_nothing_and_leave_no_copy(world):
    first = await put(world, "a", b"x")
    again = await put(world, "a", b"x", overwrite=False)
    assert (again.changed, again.file) == (False, first.file)
    assert state(world) == (1, 0, 1)
    assert world.copies() == [first.file.locator]


async def test_other_bytes_replace_the_file_only_with_overwrite(world):
    await put(world, "a", b"x")
    with pytest.raises(FileExists):
        await put(world, "a", b"other", overwrite=False)
    assert state(world) == (1, 0, 1)
    assert len(world.copies()) == 1
    result = await put(world, "a", b"other")
    assert (result.changed, result.replaced) == (True, True)
    assert state(world) == (5, 0, 2)


@pytest.mark.parametrize("path", ["a", "a/b", "a/b.txt/c/d"])
async def test_a_file_is_never_where_a_folder_is_or_the_reverse(world, path):
    await put(world, "a/b.txt" if path != "a/b" else "a/b/c", b"x")
    with pytest.raises(Conflict):
        await put(world, path, b"y")
    assert len(world.copies()) == 1
    await put(world, "a-b", b"z")  # a neighbour of the folder in the order of paths
    await put(world, "a/b-", b"z")


async def test_files_of_packages_are_neither_replaced_nor_removed(world):
    await world.publish(*WHEEL)
    path = f"packages/demo/1.0/{WHEEL[0]}"
    with pytest.raises(Conflict):
        await put(world, path, b"x")
    with pytest.raises(NotFound):
        await remove(world, path)
    assert find(world, path).package_id is not None


async def test_a_removed_path_may_be_used_again(world):
    await put(world, "a", b"x")
    assert (await remove(world, "a")).path == "a"
    assert find(world, "a") is None
    assert state(world) == (0, 0, 2)
    with pytest.raises(NotFound):
        await remove(world, "a")
    await put(world, "a", b"y")
    assert happened(world) == [("published", "", "a"), ("deleted", "", "a"), ("published", "", "a")]


async def test_a_guard_refuses_a_put_within_the_transaction(world):
    def guard(tx):
        raise Conflict("not now")

    with pytest.raises(Conflict, match="not now"):
        await put(world, "a", b"x", guard=guard)
    assert (state(world), world.copies()) == ((0, 0, 0), [])


async def test_virtual_repositories_take_no_plain_files(world):
    virtual = evolve(world.repository, type=RepositoryType.VIRTUAL)
    with pytest.raises(ReadOnly):
        await world.content.change(remove_plain_file, virtual, "a", SYSTEM)
