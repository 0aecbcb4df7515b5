"""Backups in a folder: what is copied, kept and removed, and what a failure leaves."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from pkgrepo.errors import Conflict, Invalid, NotFound, StorageFailed, StorageFull
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.backup.manifests import LOST, decode, read_list
from pkgrepo.repositories.backup.place import open_place
from pkgrepo.repositories.backup.reading import (
    BackupProblem,
    check_blobs,
    get_part,
    list_backups,
    read_key,
    read_manifest,
)
from pkgrepo.repositories.backup.writing import BackupOptions, BackupReport, BackupWriter
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.repositories.upkeep.gc import GarbageCollector, GcOptions
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.s3.places import Destination
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import BACKUP
from pkgrepo.storage.catalog.engine.online_copy import seal
from pkgrepo.storage.catalog.server import jobs
from pkgrepo.storage.secret_box import SecretBox
from tests.support.python_packages import make_wheel
from tests.support.repositories import NOW

PROGRESS = NoProgress()


class Backups:
    """Makes backups of a world in memory, and looks at them."""

    def __init__(self, world, folder: Path) -> None:
        self.world = world
        self.folder = folder / "backups here"
        self.destination = Destination(address=str(self.folder))
        self.before_copy = lambda: None
        key = folder / "data" / "credentials.key"
        key.parent.mkdir()
        self.writer = BackupWriter(
            world.context,
            copy_catalog=self._copy,
            data=key.parent,
            key=key,
            secrets=SecretBox.load(key),
            low_water=0,
        )

    def _copy(self, target: Path, _goes_on) -> None:
        connection = self.world.catalog.tx.connection
        with apsw.Connection(str(target)) as copy, copy.backup("main", connection, "main") as backup:
            backup.step()
        seal(target)
        self.before_copy()

    async def make(self, **options):
        given = {"keep": 9, **options}
        return await self.writer.run(BackupOptions(destination=self.destination, **given), PROGRESS)

    async def place(self):
        return await open_place(
            self.destination, self.world.pools, uid=None, scratch=self.folder, low_water=0, writes=False
        )

    async def check(self, backup_id: str = ""):
        """Read a whole backup, as a restore does."""
        place, pools = await self.place(), self.world.pools
        name, manifest = await read_manifest(place, backup_id)
        scratch = self.folder.with_name(f"check {name[-20:]}")
        scratch.mkdir(exist_ok=True)
        for each in scratch.iterdir():
            each.unlink()
        await get_part(place, pools, manifest.catalog, scratch / "catalog", "catalog")
        await get_part(place, pools, manifest.list, scratch / "list", "list of blobs")
        return await check_blobs(place, pools, scratch / "list", manifest.blobs, PROGRESS)

    def copies(self):
        return sorted(each.name for each in (self.folder / "content" / "blobs").rglob("*") if each.is_file())

    def manifests(self):
        return sorted(each for each in (self.folder / "backups").iterdir())


@pytest.fixture
def backups(world, tmp_path):
    return Backups(world, tmp_path)


async def publish(world, version: str):
    return await world.publish(*make_wheel("demo", version))


async def test_a_second_backup_copies_only_what_is_new(world, backups):
    await publish(world, "1.0")
    first = await backups.make()
    assert (first.blobs, first.copied, first.copied_size == first.size > 0) == (2, 2, True)
    assert (await backups.make()).copied == 0
    await publish(world, "2.0")
    third = await backups.make()
    assert (third.blobs, third.copied, third.backups) == (4, 2, 3)
    assert (await backups.check()).blobs == 4
    assert (await backups.check(first.id)).problems == []


async def test_only_the_owner_can_read_what_holds_secrets(world, backups):
    await publish(world, "1.0")
    await backups.make(with_key=True)
    place = await backups.place()
    name, manifest = await read_manifest(place)
    catalog = backups.folder / "content" / "blobs" / manifest.catalog.locator
    modes = [backups.folder, catalog, *backups.manifests(), *(backups.folder / "keys").iterdir()]
    assert [stat.S_IMODE(each.stat().st_mode) & 0o077 for each in modes] == [0] * 4
    assert await read_key(place, name, manifest) == (backups.folder.parent / "data/credentials.key").read_bytes()
    next((backups.folder / "keys").iterdir()).write_bytes(b"another")
    with pytest.raises(Invalid, match="key in the backup is damaged"):
        await read_key(place, name, manifest)


async def test_the_key_is_left_out_unless_it_is_wanted(world, backups):
    await backups.make()
    place = await backups.place()
    name, manifest = await read_manifest(place)
    assert await read_key(place, name, manifest) is None
    assert list((backups.folder / "keys").iterdir()) == []
    assert manifest.key_fingerprint


async def test_older_backups_go_with_the_copies_that_no_other_has(world, backups):
    await publish(world, "1.0")
    await backups.make(with_key=True)
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
    await GarbageCollector(world.context, on_change=world.poked.append).run(
        world.storage, world.registry.all(), GcOptions(grace_s=0)
    )
    await publish(world, "2.0")
    second = await backups.make(keep=2)
    assert (second.blobs, second.removed, len(backups.copies())) == (2, 0, 2 + 2 + 2 * 2)
    third = await backups.make(keep=1)
    assert (third.backups, len(backups.manifests()), list((backups.folder / "keys").iterdir())) == (1, 1, [])
    assert third.removed == 2 + 2 * 2
    assert len(backups.copies()) == 2 + 2
    assert (await backups.check()).problems == []


@pytest.mark.parametrize("what", ["blob", "catalog", "list", "manifest"])
async def test_one_changed_byte_is_found(world, backups, what):
    await publish(world, "1.0")
    await backups.make()
    _, manifest = await read_manifest(await backups.place())
    content = backups.folder / "content" / "blobs"
    if what == "blob":
        (path,) = content.rglob(f"{world.copies()[0][3:67]}.*")
    else:
        path = {
            "catalog": content / manifest.catalog.locator,
            "list": content / manifest.list.locator,
            "manifest": backups.manifests()[0],
        }[what]
    flip(path)
    if what == "blob":
        assert (await backups.check()).damaged == 1
    else:
        with pytest.raises(Invalid, match=f"{what}.* is damaged"):
            await backups.check()


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


async def test_a_damaged_copy_is_replaced_when_the_copies_are_read_again(world, backups):
    await publish(world, "1.0")
    first = await backups.make()
    (copy,) = (backups.folder / "content" / "blobs").rglob(f"{world.copies()[0][3:67]}.*")
    flip(copy)
    damaged = (await backups.check()).damaged
    assert (await backups.make()).copied == 0, "its size is right"
    renewed = await backups.make(renew=True)
    assert renewed.copied == damaged
    assert (await backups.check()).problems == []
    assert (await backups.make()).copied == 0
    assert (await backups.check()).problems == []
    assert (await backups.check(first.id)).damaged == damaged


async def test_what_fails_in_the_middle_leaves_the_earlier_backup_and_is_continued(world, backups):
    await publish(world, "1.0")
    first = await backups.make(keep=1)
    await publish(world, "2.0")
    copy = world.root / "blobs" / world.copies()[0]
    new = [each for each in world.copies() if each.rpartition("/")[2][:64] not in {c[:64] for c in backups.copies()}]
    copy = world.root / "blobs" / new[0]
    kept = copy.read_bytes()
    copy.unlink()
    with pytest.raises(BackupProblem, match="cannot be copied"):
        await backups.make(keep=1)
    assert len(backups.manifests()) == 1
    assert (await backups.check(first.id)).problems == []
    copy.write_bytes(kept)
    again = await backups.make(keep=1)
    assert again.copied == 1, "the other blob was copied before"
    assert (await backups.check()).blobs == 4


async def test_what_the_server_has_lost_is_listed_and_fails_nothing(world, backups):
    await publish(world, "1.0")
    locator = world.copies()[0]
    (world.root / "blobs" / locator).unlink()
    await world.catalog.write(blobs.mark_suspect, world.storage.id, locator[3:67], locator)
    report = await backups.make()
    assert (report.lost, report.copied) == (1, 1)
    place = await backups.place()
    _, manifest = await read_manifest(place)
    await get_part(place, world.pools, manifest.list, backups.folder / "got", "list of blobs")
    assert [each.sha256 for each in read_list(backups.folder / "got") if each.locator == LOST] == [locator[3:67]]
    assert (manifest.lost, (await backups.check()).blobs) == (1, 1)


async def test_a_collection_takes_nothing_between_the_copy_of_the_catalog_and_that_of_the_blobs(world, backups):
    """Without the job, the collection removes the bytes that the copy of the catalog names."""
    await publish(world, "1.0")
    world.clock.ms = NOW
    collector = GarbageCollector(world.context, on_change=world.poked.append)

    async def remove_and_collect():
        await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
        return await collector.run(world.storage, world.registry.all(), GcOptions(grace_s=0))

    async def backup_meanwhile():
        """A backup of whose blobs none is copied before the collection has ended."""
        compare, found = backups.writer._compare, []

        async def collected(*arguments):
            found.append(await remove_and_collect())
            await compare(*arguments)

        backups.writer._compare = collected
        return await backups.make(), found[0]

    begun = {"uid": "it", "kind": BACKUP, "key": BACKUP, "data": {}, "holder": "us", "now_ms": NOW}
    await world.catalog.write(jobs.begin_job, **begun, until_ms=NOW + 10**9)
    report, collected = await backup_meanwhile()
    assert (collected.blobs, collected.held, report.copied) == (0, 2, 2)
    assert (await backups.check()).problems == []
    ended = {"state": "done", "result": {}, "progress": [], "now_ms": NOW}
    await world.catalog.write(jobs.end_job, "it", "us", **ended)
    gone = await collector.run(world.storage, world.registry.all(), GcOptions(grace_s=0))
    assert (gone.blobs, gone.held, world.copies()) == (2, 0, [])


async def test_a_killed_backup_holds_off_collections_until_its_lease_ends(world, backups):
    await publish(world, "1.0")
    await world.content.change(remove_files, world.repository, "demo", "1", None, SYSTEM, world.format.index, False)
    collector = GarbageCollector(world.context, on_change=world.poked.append)
    begun = {"uid": "it", "kind": BACKUP, "key": BACKUP, "data": {}, "holder": "killed", "now_ms": NOW}
    await world.catalog.write(jobs.begin_job, **begun, until_ms=NOW + 60_000)
    world.clock.ms = NOW + 10_000
    assert (await collector.run(world.storage, world.registry.all(), GcOptions(grace_s=0))).blobs == 0
    world.clock.ms = NOW + 60_000
    assert (await collector.run(world.storage, world.registry.all(), GcOptions(grace_s=0))).blobs == 2


async def test_a_folder_with_other_things_or_of_another_server_is_refused(world, backups, tmp_path):
    await backups.make()
    await world.catalog.write(lambda tx: tx.execute("UPDATE setting SET value = 'other' WHERE key = 'server_uid'"))
    with pytest.raises(Conflict, match="belongs to storage"):
        await backups.make()
    backups.destination = Destination(address=str(tmp_path / "data"))
    with pytest.raises(Conflict, match="holds other things already, such as"):
        await backups.make()
    backups.destination = Destination(address=str(tmp_path / "nothing"))
    with pytest.raises(NotFound):
        await backups.place()


async def test_two_processes_do_not_write_to_one_folder(world, backups):
    await backups.make()
    place = await open_place(
        backups.destination, world.pools, uid=None, scratch=backups.folder, low_water=0, writes=True
    )
    with pytest.raises(Conflict, match="another process writes a backup"):
        await backups.make()
    await place.close()
    await backups.make()


async def test_an_unknown_backup_and_a_newer_form_are_refused(world, backups):
    await backups.make()
    place = await backups.place()
    with pytest.raises(NotFound):
        await read_manifest(place, "20200101T000000000Z")
    name, _ = await read_manifest(place)
    data = json.loads(backups.manifests()[0].read_bytes())
    with pytest.raises(Invalid, match="do not have the digest in its name"):
        decode(name, json.dumps(data).encode())
    assert await list_backups(place) == [name]


@pytest.mark.parametrize(
    ("address", "endpoint", "reason"),
    [
        ("s3://bucket/a", "", "backup.endpoint"),
        ("s3://", "http://s3.example", "no address such as"),
        ("s3://user@bucket", "http://s3.example", "no address such as"),
    ],
)
def test_a_bucket_needs_its_name_and_its_server(address, endpoint, reason):
    with pytest.raises(Invalid, match=reason):
        assert Destination(address=address, endpoint=endpoint).bucket


def test_the_prefix_of_a_bucket_ends_with_a_slash():
    place = Destination(address="s3://bucket/a/b/", endpoint="http://s3.example").bucket
    assert (place.bucket, place.prefix) == ("bucket", "a/b/")


async def test_a_place_without_room_is_a_clear_error(world, backups):
    await publish(world, "1.0")
    first = await backups.make()
    await publish(world, "2.0")
    backups.writer._low_water = 2**62
    with pytest.raises(StorageFull, match=r"backup in .* has no room left"):
        await backups.make(keep=1)
    assert (await backups.check()).blobs == first.blobs


@pytest.mark.parametrize("suspect", [(True, True), (True, False), (False, True)])
async def test_a_blob_is_lost_only_where_every_storage_has_lost_it(suspect):
    """One storage that cannot be read now may have it: a backup without it is not whole."""
    writer = object.__new__(BackupWriter)
    answers = iter(suspect)

    async def look(*_):
        return next(answers)

    async def fails(*_):
        raise StorageFailed("main")

    writer._catalog, writer._copy_from = SimpleNamespace(look=look), fails
    report, copied = BackupReport(), []
    wanted = SimpleNamespace(locator="", sha256="a" * 64, sources=[(1, "x"), (2, "y")])
    await writer._copy_blob(None, wanted, None, report, copied)
    assert (report.lost, len(report.problems)) == ((1, 0) if all(suspect) else (0, 1))


async def test_another_id_of_the_store_is_found(world, backups):
    await backups.make()
    file = backups.folder / "content" / "format"
    text = file.read_text()
    file.chmod(0o600)
    file.write_text(text[:-3] + ("1" if text[-3] == "0" else "0") + text[-2:])
    with pytest.raises(Invalid, match="content/format in"):
        await read_manifest(await backups.place())
