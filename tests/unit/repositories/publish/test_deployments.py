"""Files of a deployment are staged durably, and published whole or not at all together with its end."""

import pytest
from attrs import evolve

from pkgrepo.errors import Conflict, FileExists, NotFound, StorageFailed
from pkgrepo.model.deployments import DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import publish_deployment, stage_files
from pkgrepo.storage.catalog.blobs import gc
from pkgrepo.storage.catalog.packages import deployments, files
from pkgrepo.storage.catalog.packages.deployments import FAILED, PENDING, PUBLISHED, PUBLISHING, VALIDATED
from tests.support.admission import admitted
from tests.support.python_packages import make_wheel
from tests.support.repositories import NOW

ONE = make_wheel("one", "1.0")
TWO = make_wheel("two", "2.0")
OTHER_TWO = make_wheel("two", "2.0", pad=10)


class Deploying:
    """A deployment of wheels in the repository of a world."""

    def __init__(self, world):
        self.world = world
        self.guarded = []
        self.releases = []

    async def begin(self):
        self.made = await self.world.catalog.write(
            deployments.add_deployment,
            uid="one",
            repository_id=self.world.repository.id,
            package_key="",
            name="",
            automatic=False,
            user_id=1,
            actor="ann",
            size=0,
            meta={},
            leased=False,
            now_ms=NOW,
        )
        return self

    async def stage(self, *wheels):
        world = self.world
        async with world.content.stage(world.repository) as staged:
            for wheel in wheels:
                release = await world.release(staged, *wheel)
                self.releases.append(release)
                found = [StagedFile(each.path, each.blob, each.attrs) for each in release.files]
                blobs = [each.blob for each in release.files]
                await world.content.change_with_blobs(stage_files, world.repository, staged, blobs, self.made.id, found)

    async def move(self, before, after):
        assert await self.world.catalog.write(
            deployments.set_state, self.made.id, before, after, leased=False, now_ms=NOW
        )

    async def publish(self, releases=None, also=None):
        releases = self.made_releases() if releases is None else releases
        world = self.world
        async with world.content.stage(world.repository) as staged:
            blobs = [] if also is None else [await staged.store(b"also")]
            result = await world.content.change_with_blobs(
                publish_deployment,
                world.repository,
                staged,
                blobs,
                self.made.id,
                releases,
                {"components": 2},
                admitted(world.repository),
                world.format.index,
                lambda _tx, now_ms: self.guarded.append(now_ms),
                lambda tx, _repository, now_ms: () if also is None else also(tx, blobs[0], now_ms),
                (),
            )
        return result.releases

    def made_releases(self):
        kept = {each.path: each.blob for each in self.files}
        return [
            evolve(each, files=tuple(evolve(file, blob=kept[file.path]) for file in each.files))
            for each in self.releases
        ]

    @property
    def state(self) -> DeploymentState:
        return self.row.state

    @property
    def row(self):
        return self.world.catalog.peek(deployments.find_deployment, self.world.repository.id, "one")

    @property
    def files(self):
        return self.world.catalog.peek(deployments.staged_files, self.made.id)


def named(world):
    rows = world.catalog.peek(lambda reader: reader.all("SELECT locator FROM blob ORDER BY locator"))
    return [row[0] for row in rows]


def path_of(name, version):
    return f"packages/{name}/{version}/{name}-{version}-py3-none-any.whl"


async def test_staged_files_are_durable_and_not_visible(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE, TWO)
    assert len(deploying.files) == 4
    assert named(world) == world.copies()
    assert world.count("file") == 0
    assert world.count("event") == 0


async def test_the_same_bytes_that_are_published_already_are_stored_once(world):
    await world.publish(*ONE)
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE)
    assert len(deploying.files) == 2
    assert len(world.copies()) == 2


async def test_a_second_file_at_a_path_is_refused(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(TWO)
    first = deploying.files
    async with world.content.stage(world.repository) as staged:
        blob = await staged.store(b"other")
        refused = []

        def stage(*args):
            result = stage_files(*args)
            refused.extend(result.refused)
            return result

        found = [StagedFile(path_of("two", "2.0"), blob)]
        await world.content.change_with_blobs(stage, world.repository, staged, [blob], deploying.made.id, found)
    assert refused == [path_of("two", "2.0")]
    assert deploying.files == first


async def test_nothing_is_staged_for_a_deployment_that_has_ended_or_is_unknown(world):
    deploying = await Deploying(world).begin()
    await deploying.move(PENDING, VALIDATED)
    with pytest.raises(Conflict):
        await deploying.stage(ONE)
    await world.catalog.write(deployments.remove_deployment, deploying.made.id)
    with pytest.raises(NotFound):
        await deploying.stage(ONE)
    assert world.copies() == []


async def test_publishing_makes_all_files_visible_and_ends_the_deployment(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE, TWO)
    await deploying.move(PENDING, PUBLISHING)
    published = await deploying.publish()
    assert [each.changed for each in published] == [True, True]
    assert (deploying.state, deploying.row.meta) == (PUBLISHED, {"components": 2})
    assert deploying.files == []
    for name, version in (("one", "1.0"), ("two", "2.0")):
        file = world.catalog.peek(files.find_file, world.repository.id, path_of(name, version))
        assert (await world.store.stat(file.locator))[0] == file.size
    assert named(world) == world.copies()


async def test_a_conflict_publishes_nothing_and_keeps_the_files(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE, TWO)
    await deploying.move(PENDING, PUBLISHING)
    await world.publish(*OTHER_TWO)
    copies = world.copies()
    with pytest.raises(FileExists):
        await deploying.publish()
    assert deploying.state is PUBLISHING
    assert world.catalog.peek(files.find_file, world.repository.id, path_of("one", "1.0")) is None
    assert len(deploying.files) == 4
    assert (world.copies(), named(world)) == (copies, copies)


async def test_only_what_is_being_published_is_published(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE)
    releases = deploying.made_releases()
    with pytest.raises(Conflict):
        await deploying.publish(releases)
    await deploying.move(PENDING, PUBLISHING)
    await deploying.publish(releases)
    with pytest.raises(Conflict):
        await deploying.publish(releases)
    assert world.count("event") == 1


async def test_what_else_is_done_is_done_in_the_same_transaction(world):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE)
    await deploying.move(PENDING, PUBLISHING)
    before = world.copies()

    def refuse(_tx, _blob, _now_ms):
        raise Conflict("no")

    with pytest.raises(Conflict):
        await deploying.publish(also=refuse)
    assert (deploying.state, world.count("file"), world.copies()) == (PUBLISHING, 0, before)
    await deploying.publish(also=lambda _tx, blob, _now_ms: [blob.locator])
    assert (deploying.state, world.copies()) == (PUBLISHED, before)


async def test_bytes_that_nobody_saw_are_discarded_at_once_and_others_stay(world):
    await world.publish(*ONE)
    before = world.copies()
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE, TWO)
    digests = world.catalog.peek(deployments.staged_digests, deploying.made.id)
    assert len(digests) == len(world.copies()) == 4
    await world.content.discard(world.repository, digests, deploying.made.created_ms)
    assert len(world.copies()) == 4  # the deployment refers to them
    await world.catalog.write(deployments.end_deployment, deploying.made.id, FAILED, {}, NOW)
    await world.content.discard(world.repository, digests, world.clock.ms + 1)
    assert len(world.copies()) == 4  # they are older
    await world.content.discard(world.repository, digests, deploying.made.created_ms)
    assert world.copies() == named(world) == before


async def test_bytes_that_cannot_be_deleted_are_left_to_gc(world, monkeypatch):
    deploying = await Deploying(world).begin()
    await deploying.stage(ONE)
    digests = world.catalog.peek(deployments.staged_digests, deploying.made.id)
    await world.catalog.write(deployments.end_deployment, deploying.made.id, FAILED, {}, NOW)

    async def fail(_locator):
        raise StorageFailed("main")

    monkeypatch.setattr(world.store, "delete", fail)
    await world.content.discard(world.repository, digests, deploying.made.created_ms)
    assert len(world.catalog.peek(gc.list_deleting, world.storage.id)) == 2
