"""Raw files in the readable layout: at the top, directly below their package or deeper, and beside other packages."""

import pytest
import pytest_twisted

from pkgrepo.formats.raw.files import make_release
from pkgrepo.formats.raw.format import raw
from pkgrepo.formats.raw.paths import package_of, version_of
from pkgrepo.model import SYSTEM, NewFile
from pkgrepo.repositories.format import index_nothing
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.storage.catalog.server import layout_pending, settings
from tests.support.admission import admitted
from tests.support.repositories import RepositoryServices, chunks

PATTERNS = ("bin/v*", "releases/*")
FILES = ("top.txt", "top2.txt", "tool/notes.txt", "tool/1.2/a.bin", "tool/1.2/deep/er/a.bin", "tool/unversioned/a.bin")
BESIDE = ("bin/v1", "bin/v2", "bin/notes.txt", "bin/x/y", "releases/one.txt", "releases/tool/1.2/a.bin")


class RawServices(RepositoryServices):
    """A storage with the repository ``main/t`` of raw files, whose packages are by ``PATTERNS``."""

    def __init__(self, root, pools):
        super().__init__(root, pools, format=raw(), name="t")

    async def put(self, path, data=b"x"):
        async with self.content.stage(self.repository) as staged:
            file = NewFile(path=path, blob=await staged.receive(chunks(data)))
            release = make_release(package_of(path, PATTERNS), file, overwrite=True, reuse=True)
            return await self.content.publish(
                self.repository, release, staged, admitted(self.repository), index_nothing
            )

    async def delete(self, path):
        package = package_of(path, PATTERNS)
        version = version_of(package, path)
        await self.content.change(remove_files, self.repository, package, version, [path], SYSTEM, index_nothing, True)

    def files(self):
        """The public files that the layout shows, with their bytes."""
        shown = (place.removeprefix("t/") for place in self.shown())
        return {path: self.layout.read(f"t/{path}") for path in shown if not path.startswith((".pkg", ".repository"))}

    async def check(self, expected):
        """Check that the layout shows these files and no more, also by ``verify`` and by a reindex."""
        await self.follow()
        assert self.catalog.peek(layout_pending.backlog).failed == {}
        for repair in (False, True, False):
            report = await self.verify(repair=repair)
            assert (report.problems, report.layout_changes) == ([], 0)
        assert self.files() == expected
        again = RawServices(self.root, self.pools)
        await again.start(repository=False)
        report = await again.reindex()
        assert (report.problems, report.files) == ([], len(expected))
        rows = again.catalog.peek(lambda reader: reader.all("SELECT path FROM file ORDER BY path"))
        assert [path for (path,) in rows] == sorted(expected)


@pytest_twisted.async_yield_fixture
async def world(tmp_path, pools):
    found = RawServices(tmp_path / "store", pools)
    await found.start()
    yield found
    await found.stop()


@pytest.mark.parametrize("paths", [FILES, BESIDE])
async def test_files_are_shown_replaced_and_removed_wherever_they_lie(world, paths):
    for path in paths:
        await world.put(path, path.encode())
    await world.check({path: path.encode() for path in paths})
    for path in paths:
        await world.put(path, b"new " + path.encode())
    await world.check({path: b"new " + path.encode() for path in paths})
    left = {path: b"new " + path.encode() for path in paths}
    for path in paths:
        await world.delete(path)
        del left[path]
        await world.check(left)


@pytest.mark.parametrize("below", ["a/b", "a/b/c", "a/b/c/d"])
async def test_a_top_level_file_may_become_a_folder_and_the_reverse(world, below):
    for _ in range(2):
        await world.put("a", b"file")
        await world.check({"a": b"file"})
        await world.delete("a")
        await world.put(below, b"below")
        await world.check({below: b"below"})
        await world.delete(below)
    await world.check({})


async def test_verify_finds_and_repairs_what_others_changed(world):
    for path in FILES:
        await world.put(path, path.encode())
    await world.follow()
    strays = ("stray.txt", "tool/stray", "tool/1.2/stray", "tool/1.2/deep/stray", "top3.txt/stray")
    for stray in strays:
        world.layout.write(f"t/{stray}", b"stray")
    lost = ("top.txt", "tool/1.2/deep/er/a.bin")
    for path in lost:
        world.layout.remove(f"t/{path}")
    assert (await world.verify()).layout_changes == len(strays) + len(lost)
    assert (await world.verify(repair=True)).problems == []
    await world.check({path: path.encode() for path in FILES})


async def test_a_link_whose_sidecar_a_power_cut_has_lost_is_removed_at_the_next_start(world):
    for path in ("top.txt", "tool/1.2/deep/a.bin", "other.txt"):
        await world.put(path, b"old")
    await world.follow()
    await world.delete("top.txt")
    await world.delete("tool/1.2/deep/a.bin")
    for sidecar in ("top.txt/unversioned", "tool/1.2"):
        world.layout.remove(f"t/.pkgrepo/versions/{sidecar}.json")
    await world.follow()
    assert "top.txt" in world.files()  # nothing knows of it
    await world.follower.stopService()
    await world.catalog.write(settings.put, layout_pending.MARK, "0")  # nothing was made durable
    await world.check({"other.txt": b"old"})
