"""Fragments that differ from the stored files are made anew, and what cannot be made from files is kept."""

import pytest
import pytest_twisted

from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.format import maven as maven_format
from pkgrepo.formats.maven.metadata.joining import render_directory
from pkgrepo.formats.maven.paths import parse_text
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.model import SYSTEM, VersionState
from pkgrepo.repositories.publish.package_changes import set_version_state
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.repositories.upkeep.rebuild import rebuild_documents
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.repositories import NOW, chunks

FORMAT = maven_format()
KEY = "com.example:app"
BUILDS = ("1.1-20240102.030405-6", "1.1-20240103.030405-7")


@pytest_twisted.async_yield_fixture
async def maven(world):
    """A repository with releases, a yanked one, and builds of a snapshot."""
    repository = await world.catalog.write(
        repositories.add_repository, storage_id=world.storage.id, name="mvn", format="maven", type="Hosted",
        visibility="public", config={"type": "Hosted"}, now_ms=NOW,
    )  # fmt: skip
    paths = [f"com/example/app/{version}/app-{version}.jar" for version in ("1.0", "1.10", "1.9")]
    paths += [f"com/example/app/1.1-SNAPSHOT/app-{each}.pom" for each in BUILDS]
    for path in (*paths, "com/example/lib/1/lib-1.jar"):
        target = parse_text(path)
        async with world.content.stage(repository) as staged:
            blob = await staged.receive(chunks(path.encode()))
            release = make_release(target.coordinates, [new_file(target, blob)])
            await world.content.publish(repository, release, staged, admitted(repository), FORMAT.index)
    await world.content.change(
        set_version_state, repository, KEY, "1.9", VersionState.YANKED, "", admitted(repository), FORMAT.index
    )
    yield repository


def shown(world, repository):
    found = [
        world.catalog.peek(render_directory, repository.id, f"com/example/app{each}") for each in ("", "/1.1-SNAPSHOT")
    ]
    return [text.split(b"<lastUpdated>")[0] for text in found]


async def rebuild(world, repository, key=None):
    result = await rebuild_documents(
        world.catalog, world.content, repository, FORMAT.tree, FORMAT.index, key, SYSTEM, NoProgress()
    )
    return result["packages"], result["changed"]


def package_id(world, repository):
    return world.catalog.peek(packages.find_package, repository.id, KEY).id


async def test_documents_that_are_right_are_left_alone(world, maven):
    seq = world.catalog.peek(events.last_seq)
    assert await rebuild(world, maven) == (2, 0)
    assert world.catalog.peek(events.last_seq) == seq


async def test_lost_and_superfluous_fragments_are_corrected(world, maven):
    right = shown(world, maven)
    assert b"<version>1.9</version>" not in right[0]
    own = package_id(world, maven)

    def harm(tx):
        tx.execute("DELETE FROM fragment WHERE package_id = ? AND key IN ('1.10', ?)", (own, f"app-{BUILDS[1]}.pom"))
        index_documents.put_fragment(tx, own, "version", b"\xff", "9.9", b"<version>9.9</version>")

    world.catalog.do(harm)
    assert shown(world, maven) != right
    assert await rebuild(world, maven) == (2, 1)
    assert shown(world, maven) == right
    assert await rebuild(world, maven, KEY) == (1, 0)


async def test_what_was_uploaded_is_kept(world, maven):
    own = package_id(world, maven)
    world.catalog.do(index_documents.put_fragment, own, "uploaded", b"", "", b"\x95\x90\x90\x90\xc4\x00\xc4\x00")
    assert await rebuild(world, maven) == (2, 0)
    assert world.catalog.peek(index_documents.find_fragment, own, "uploaded", b"", "") is not None


async def test_a_package_that_does_not_exist_is_not_found(world, maven):
    with pytest.raises(NotFound):
        await rebuild(world, maven, "com.example:absent")
