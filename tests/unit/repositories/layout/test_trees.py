"""Files with free paths in the readable layout: shown at their paths, with sidecars where no path leads to."""

import json

import pytest
import pytest_twisted

from pkgrepo.model import SYSTEM, NewFile
from pkgrepo.repositories.layout.trees import SIDECARS, TreePlaces, kind_of
from pkgrepo.repositories.publish.index import PackageIndex
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.repositories.publish.plain_files import put_plain_file, remove_plain_file
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.server import layout_pending, repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from tests.support.admission import admitted
from tests.support.repositories import RepositoryServices, chunks
from tests.support.tree_format import KEPT, TREE, TREE_FORMAT

FORMAT = TREE_FORMAT


class TreeServices(RepositoryServices):
    """A storage with the repository ``main/t`` of this format."""

    def __init__(self, root, pools):
        super().__init__(root, pools, format=FORMAT, name="t")

    async def release_file(self, path, data=b"x"):
        """Publish a file of the version that its directory names."""
        package, version, _ = path.rsplit("/", 2)
        async with self.content.stage(self.repository) as staged:
            blob = await staged.receive(chunks(data))
            release = Release(
                package, package, version, version, version.encode(), (NewFile(path=path, blob=blob),), overwrite=True
            )
            return await self.content.publish(self.repository, release, staged, admitted(self.repository), FORMAT.index)

    async def put(self, path, data=b"x"):
        """Put a plain file."""
        async with self.content.stage(self.repository) as staged:
            blob = await staged.receive(chunks(data))
            new = NewFile(path=path, blob=blob, media_type="text/x", attrs={"a": 1})
            return await self.content.change_with_blobs(
                put_plain_file, self.repository, staged, [blob], new, True, admitted(self.repository), None
            )

    async def remove(self, path):
        await self.content.change(remove_plain_file, self.repository, path, SYSTEM)

    async def remove_version(self, package, version, paths=None):
        await self.content.change(remove_files, self.repository, package, version, paths, SYSTEM, FORMAT.index, False)

    async def keep(self, package, body):
        """Add a fragment that no file has, and the package for it."""

        def command(tx, repository, now_ms):
            found, added = packages.ensure_package(
                tx, repository.id, key=package, name=package, serial=0, now_ms=now_ms
            )
            repositories.add_usage(tx, repository.id, Usage(packages=int(added)))
            index_documents.put_fragment(tx, found.id, KEPT, b"\0\xff", "k", body)
            PackageIndex(tx, found, now_ms)
            from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial

            append_package_event(tx, bump_package_serial(tx, repository, found, now_ms), "changed", {}, SYSTEM, now_ms)

        await self.content.change(command, self.repository)

    def places(self):
        """The places outside of the sidecars, without the folder of the repository."""
        return [place[2:] for place in self.shown() if not place.startswith(("t/.pkgrepo/", "t/.repository.json"))]

    def sidecars(self):
        return [place for place in self.shown() if place.startswith("t/.pkgrepo/")]

    def read(self, place):
        return self.layout.read(f"t/{place}")

    def facts(self):
        """The rows that a reindex has to bring back."""
        found = self.catalog.peek(
            lambda r: r.all(
                """
                SELECT f.path, p.key, v.key, f.sha256, f.size, f.media_type, f.attrs, f.created_at FROM file f
                LEFT JOIN package p ON p.id = f.package_id LEFT JOIN version v ON v.id = f.version_id ORDER BY f.path
                """
            )
        )
        kept = self.catalog.peek(lambda r: r.all("SELECT kind, sort, key, body FROM fragment ORDER BY kind, key"))
        now = self.catalog.peek(repositories.get_repository, self.repository.id)
        return found, kept, now.bytes_used, now.package_count


@pytest_twisted.async_yield_fixture
async def world(tmp_path, pools):
    found = TreeServices(tmp_path / "store", pools)
    await found.start()
    yield found
    await found.stop()


async def test_files_are_at_their_paths_and_documents_beside_them(world):
    await world.release_file("g/a/1/a-1.jar", b"jar")
    await world.put("g/a/1/notes.txt", b"notes")
    await world.put("top.txt", b"top")
    await world.follow()
    assert world.places() == sorted([
        "top.txt", "g/a/listing.txt", "g/a/same.txt", "g/a/1/a-1.jar", "g/a/1/notes.txt",
    ])  # fmt: skip
    assert (world.read("g/a/1/a-1.jar"), world.read("top.txt")) == (b"jar", b"top")
    assert world.read("g/a/listing.txt") == world.read("g/a/same.txt") == b"g/a/1/a-1.jar"
    assert len(world.sidecars()) == 4  # package, version, two plain files
    assert (await world.verify()).problems == []


async def test_what_is_removed_disappears_and_its_neighbours_stay(world):
    for path in ("g/a/1/a-1.jar", "g/a/1/a-1.pom", "g/a/2/a-2.jar"):
        await world.release_file(path, path.encode())
    for path in ("g/a/1/notes.txt", "g/a/notes.txt", "g/notes.txt"):
        await world.put(path)
    await world.follow()
    await world.remove_version("g/a", "1", ["g/a/1/a-1.pom"])
    await world.follow()
    assert "g/a/1/a-1.pom" not in world.places()
    await world.remove_version("g/a", "1")
    await world.remove("g/notes.txt")
    await world.follow()
    assert world.places() == sorted([
        "g/a/listing.txt", "g/a/notes.txt", "g/a/same.txt", "g/a/1/notes.txt", "g/a/2/a-2.jar",
    ])  # fmt: skip
    await world.remove_version("g/a", "2")
    await world.follow()
    assert world.places() == sorted(["g/a/notes.txt", "g/a/1/notes.txt"])
    assert len(world.sidecars()) == 3, "one of them is about the removed package"
    assert (await world.verify()).problems == []


async def test_a_replaced_file_is_shown_with_its_new_bytes(world):
    await world.put("a", b"old")
    await world.follow()
    await world.put("a", b"newer")
    await world.follow()
    assert world.read("a") == b"newer"
    assert (await world.verify()).problems == []


async def test_a_file_may_become_a_folder_and_the_reverse_at_any_time(world):
    for _ in range(2):
        await world.put("a/b", b"file")
        await world.follow()
        await world.remove("a/b")
        await world.put("a/b/c/d", b"below")
        await world.follow()
        assert world.places() == ["a/b/c/d"]
        await world.remove("a/b/c/d")
    await world.put("a/b", b"file")
    await world.remove("a/b")
    await world.put("a/b/c", b"below")
    await world.remove("a/b/c")
    await world.put("a/b", b"again")
    await world.follow()
    assert world.places() == ["a/b"]
    assert world.catalog.peek(layout_pending.backlog).failed == {}


HOSTILE = [
    ".repository.json",
    ".repository.json/x",
    ".repository.json~",
    f"{SIDECARS}/versions/g~-a/1.json",
    f"{SIDECARS}/files/ab/cd.json",
    f"{SIDECARS}~/packages/p.json",
    f"{SIDECARS}~~",
    ".tmp/x",
    "g/.repository.json",
    "g/.pkgrepo/versions/x/1.json",
    "x/.package.json",
    "x/index.json",
    "manifests/x.json",
    "a~-b/~",
    "é/" + "ü" * 127,
    "/".join(["d" * 255] * 4),
]


@pytest.mark.parametrize("path", HOSTILE)
async def test_no_path_leads_to_a_sidecar_and_every_file_comes_back(world, path):
    await world.put("other.txt", b"other")
    await world.follow()
    before = {place: world.layout.read(place) for place in world.shown()}
    forged = json.dumps({"uid": "x", "storage": "main", "name": "evil", "format": "tree"}).encode()
    await world.put(path, forged)
    await world.follow()
    assert {place: world.layout.read(place) for place in before} == before
    assert len(world.shown()) + path.startswith(".tmp") == len(before) + 2  # the file and its sidecar
    assert (await world.verify()).problems == []
    again = TreeServices(world.root, world.pools)
    await again.start(repository=False)
    assert (await again.reindex()).problems == []
    assert again.facts() == world.facts()
    assert [each.path for each in again.registry.all()] == ["main/t"]


def test_sidecars_of_different_packages_and_versions_never_share_a_place():
    places = TreePlaces("t")
    long = "v" * 255
    cut = places.of_version("g:a", long).rpartition("/")[2].removesuffix(".json")
    names = [long, cut, cut.replace("~", "~-"), "~", "~-", "~~", "a~b", ".", "x.json", "x"]
    assert len({places.of_version("g:a", name) for name in names}) == len(names)
    assert len({places.of_version(name, "1") for name in names}) == len(names)
    assert all(kind_of(places.of_version(name, name)) is not None for name in names)
    assert all(kind_of(places.of_path(path)) is None for path in HOSTILE)


async def test_a_reindex_brings_back_versions_plain_files_and_kept_fragments(world):
    await world.release_file("g/a/1/a-1.jar", b"jar")
    await world.release_file("g/a/1/a-1.json", b'{"not": "a sidecar"}')
    await world.release_file("g/a/2/a-2.jar", b"jar")
    await world.put("g/a/1/notes.json", b"[]")
    await world.put("empty", b"")
    await world.keep("g/a", b"plugins")
    await world.keep("g/only", b"plugins of a group")
    await world.follow()
    assert world.read("g/only/listing.txt") == b"plugins of a group"
    again = TreeServices(world.root, world.pools)
    await again.start(repository=False)
    report = await again.reindex()
    assert (report.problems, report.notes) == ([], [])
    assert (report.repositories, report.versions, report.files) == (1, 2, 5)
    assert again.facts() == world.facts()
    serial = again.repository.serial
    second = await again.reindex()
    assert (second.repositories, second.versions, second.files) == (0, 0, 0)
    assert again.repository.serial == serial
    shown = {place: world.layout.read(place) for place in world.shown()}
    await again.follow()
    assert {place: again.layout.read(place) for place in again.shown()} == shown
    assert (await again.verify()).problems == []
    again.follower.stopService()


async def test_verify_finds_and_repairs_differences(world):
    await world.release_file("g/a/1/a-1.jar", b"jar")
    await world.put("p/q.txt", b"plain")
    await world.follow()
    world.layout.file("t/p/q.txt").unlink()
    world.layout.write("t/g/a/listing.txt", b"wrong")
    for stray in ("t/stray.txt", "t/g/a/1/stray", "t/g/a/stray", "t/.pkgrepo/files/ab/stray.json"):
        world.layout.write(stray, b"{}")
    found = await world.verify()
    assert found.layout_changes == 6
    assert (await world.verify(repair=True)).problems == []
    assert world.places() == sorted(["g/a/listing.txt", "g/a/same.txt", "g/a/1/a-1.jar", "p/q.txt"])
    assert (await world.verify()).problems == []


async def test_a_layout_that_is_switched_on_gets_the_plain_files_too(world):
    await world.put("p/q.txt", b"plain")
    await world.release_file("g/a/1/a-1.jar", b"jar")
    await world.follow()
    world.layout.discard("t")
    await world.catalog.write(layout_pending.add_repositories, [world.repository.id])
    await world.follower.catch_up()
    world.follower.startService()
    await world.follow()
    assert world.places() == sorted(["g/a/listing.txt", "g/a/same.txt", "g/a/1/a-1.jar", "p/q.txt"])


async def test_a_lost_blob_of_a_plain_file_is_mended_from_the_layout(world):
    await world.put("p/q.txt", b"plain")
    await world.follow()
    file = world.catalog.peek(files.find_file, world.repository.id, "p/q.txt")
    (world.root / "blobs" / file.locator).unlink()
    report = await world.verify(repair=True)
    assert (report.missing, report.problems) == (1, [])
    mended = world.catalog.peek(files.find_file, world.repository.id, "p/q.txt")
    assert (world.root / "blobs" / mended.locator).read_bytes() == b"plain"


async def test_plain_files_of_one_folder_are_listed_in_pages_and_without_those_below(world):
    for path in ("d/a", "d/b", "d/sub/c", "d", "d_/x", "d-/x", "e"):
        if path != "d":
            await world.put(path)
    await world.release_file("d/1/f", b"x")
    found = world.catalog.peek(files.plain_paths_in, world.repository.id, "d")
    assert found == ["d/a", "d/b"]
    page = world.catalog.peek(files.list_plain_files, world.repository.id, "", 3)
    assert page == ["d-/x", "d/a", "d/b"]
    rest = world.catalog.peek(files.list_plain_files, world.repository.id, page[-1], 99)
    assert rest == ["d/sub/c", "d_/x", "e"]


async def test_an_uploaded_document_is_shown_under_all_names_until_one_is_made(world):
    await world.put("g/a/listing.txt", b"uploaded")
    await world.put("listing.txt", b"of the root")
    await world.put("g/a/1/listing.txt", b"of a version")
    await world.follow()
    assert [world.read(f"g/a/{each}") for each in TREE.document_names] == [b"uploaded"] * 2
    assert [world.read(each) for each in TREE.document_names] == [b"of the root"] * 2
    await world.release_file("g/a/1/a-1.jar")
    await world.follow()
    assert world.read("g/a/same.txt") == b"uploaded"
    assert world.read("g/a/1/same.txt") == b"of a version"
    assert (await world.verify()).problems == []
    await world.remove("g/a/listing.txt")
    await world.remove("g/a/1/listing.txt")
    await world.follow()
    assert [world.read(f"g/a/{each}") for each in TREE.document_names] == [b"g/a/1/a-1.jar"] * 2
    assert world.read("g/a/1/same.txt") is None
    assert (await world.verify()).problems == []
    await world.remove_version("g/a", "1")
    await world.put("g/a/listing.txt", b"uploaded again")
    await world.release_file("g/a/2/a-2.jar")
    await world.remove("g/a/listing.txt")
    await world.follow()
    assert [world.read(f"g/a/{each}") for each in TREE.document_names] == [b"g/a/2/a-2.jar"] * 2
    assert (await world.verify()).problems == []
    await world.remove_version("g/a", "2")
    await world.remove("listing.txt")
    await world.follow()
    assert world.shown() == ["t/.pkgrepo/burned/g/a.json", "t/.repository.json"]
