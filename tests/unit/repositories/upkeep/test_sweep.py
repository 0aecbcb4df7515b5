"""The sweep removes only leftovers that are old enough."""

import os
from datetime import UTC, datetime, timedelta

import pytest
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFailed
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.upkeep.housekeeping import EVERY_S, Housekeeping
from pkgrepo.repositories.upkeep.sweep import COPY_GRACE, UNCLAIMED_KEPT, UPLOAD_GRACE, Sweep
from pkgrepo.storage.catalog.packages import packages, text_index
from pkgrepo.storage.catalog.packages.checksum_claims import LASTS_MS, claims_for, put_claim
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.audit import Entry, append_entry, list_audit
from tests.support.python_packages import make_wheel
from tests.support.repositories import chunks

NOW = datetime.now(UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def sweep(world):
    return Sweep(world.context)


def age(path, by):
    """Let a file be from so long before now."""
    at = (NOW - by).timestamp()
    os.utime(path, (at, at))


async def forgotten_copy(world, by, data=b"forgotten"):
    """A copy that was committed so long ago and never published."""
    async with world.content.stage(world.repository) as staged:
        info = await staged.receive(chunks(data))
        await staged.claim([info.locator]).commit()  # and then a crash
    age(world.root / "blobs" / info.locator, by)
    return info.locator


def unfinished(world, name, by):
    folder = world.root / "uploads" / (name * 32)
    folder.mkdir()
    (folder / "data").write_bytes(b"half")
    age(folder / "data", by)
    return folder


async def test_copies_are_removed_by_age(world, sweep):
    old = await forgotten_copy(world, COPY_GRACE + SECOND, b"old")
    young = await forgotten_copy(world, COPY_GRACE - 60 * SECOND, b"young")
    swept = await sweep.run(world.storage, world.store, NOW, None)
    assert (swept.copies, world.copies()) == (1, [young])
    swept = await sweep.run(world.storage, world.store, NOW, NOW - COPY_GRACE + 61 * SECOND)
    assert (swept.copies, world.copies()) == (1, [])
    assert old != young


async def test_copies_that_a_reindex_could_not_assign_are_kept_for_a_while(world, sweep):
    before = await forgotten_copy(world, 3 * COPY_GRACE, b"before")
    await forgotten_copy(world, 2 * COPY_GRACE, b"after")
    reindexed = NOW - 2 * COPY_GRACE - SECOND
    unclaimed_ms = str(round(reindexed.timestamp() * 1000))
    await world.catalog.write(settings.put, settings.UNCLAIMED_BEFORE, unclaimed_ms)
    await sweep.run(world.storage, world.store, NOW, NOW)
    assert world.copies() == [before]
    await sweep.run(world.storage, world.store, reindexed + UNCLAIMED_KEPT - SECOND, NOW)
    assert world.copies() == [before]
    await sweep.run(world.storage, world.store, reindexed + UNCLAIMED_KEPT + SECOND, NOW)
    assert world.copies() == []


async def test_files_written_since_exclusive_use_stay(world, sweep):
    await forgotten_copy(world, SECOND)
    unfinished(world, "a", SECOND)
    swept = await sweep.run(world.storage, world.store, NOW, NOW - 2 * SECOND)
    assert not swept
    swept = await sweep.run(world.storage, world.store, NOW, NOW)
    assert (swept.copies, swept.uploads) == (1, 1)


async def test_uploads_are_removed_by_age_unless_they_can_be_resumed(world, sweep):
    old, young, claimed = (unfinished(world, *each) for each in (
        ("a", UPLOAD_GRACE + SECOND), ("b", UPLOAD_GRACE - 60 * SECOND), ("c", 2 * UPLOAD_GRACE)
    ))  # fmt: skip
    row = (claimed.name, world.repository.id, world.storage.id, b"")
    sql = "INSERT INTO upload (uid, repository_id, storage_id, state, created_at, touched_at) VALUES (?, ?, ?, ?, 0, 0)"
    await world.catalog.write(lambda tx: tx.execute(sql, row))
    swept = await sweep.run(world.storage, world.store, NOW, NOW)
    assert swept.uploads == 2
    assert [each.exists() for each in (old, young, claimed)] == [False, False, True]


async def test_an_upload_under_way_in_this_process_stays_however_old(world, sweep):
    world.store._unnamed = False
    async with world.store.begin() as upload:
        upload.write(b"x" * 600_000)
        await upload.drained()
        await upload._queue.run(int)  # its file is made
        [folder] = (world.root / "uploads").iterdir()
        age(folder / "data", 10 * COPY_GRACE)
        assert (await sweep.run(world.storage, world.store, NOW, NOW)).uploads == 0
        assert (await upload.commit()).size == 600_000


async def test_named_copies_and_those_that_the_layout_shows_stay(world, sweep):
    await world.publish(*make_wheel("demo", "1.0"))
    shown = await forgotten_copy(world, 10 * COPY_GRACE)
    world.layout.link(shown, "py/lost/1.0/lost-1.0.tar.gz")  # published in a catalog that was lost
    for path in world.copies():
        age(world.root / "blobs" / path, 10 * COPY_GRACE)
    assert not await sweep.run(world.storage, world.store, NOW, NOW)
    assert len(world.copies()) == 3


async def test_temporaries_of_the_layout_are_removed(world, sweep):
    world.layout.write("py/x/1.0/x.json", b"{}")
    folder = world.layout.root / ".tmp"
    (folder / "half").write_bytes(b"half")
    assert (await sweep.run(world.storage, world.store, NOW, NOW)).temporaries == 0  # it is of a moment ago
    later = datetime.now(UTC) + SECOND
    assert (await sweep.run(world.storage, world.store, later, later)).temporaries == 1
    assert list(folder.iterdir()) == []
    assert world.shown() == ["py/x/1.0/x.json"]


async def test_housekeeping_sweeps_every_storage_at_the_start_and_hourly(world, sweep):
    clock = Clock()
    rounds = []

    class Counting(Sweep):
        async def run(self, storage, store, now, exclusive_since):
            rounds.append((storage.name, exclusive_since))
            if len(rounds) == 2:
                raise StorageFailed("main")

    service = Housekeeping(
        world.context,
        sweep=Counting(world.context),
        exclusive_since={world.storage.id: NOW},
        audit_kept=timedelta(days=400),
        downloads_kept=timedelta(days=90),
        reactor=clock,
    )
    now_ms = world.clock.now_ms()
    for days in (401, 399):
        world.catalog.do(append_entry, Entry(SYSTEM, f"{days} days ago"), now_ms - days * 86_400_000)
    for path, age_ms in (("old.jar", LASTS_MS + 1), ("new.jar", 1)):
        world.catalog.do(put_claim, world.repository.id, path, "md5", "00", now_ms - age_ms)
    world.catalog.do(packages.ensure_package, world.repository.id, key="old", name="Old", serial=1, now_ms=now_ms)
    service.startService()
    assert rounds == [("main", NOW)]
    assert world.catalog.peek(text_index.without_about, 0, 9) == []
    assert world.catalog.do(claims_for, world.repository.id, "old.jar", 0) == {}
    assert world.catalog.do(claims_for, world.repository.id, "new.jar", 0) == {"md5": "00"}
    assert [row.action for row in world.catalog.peek(list_audit)] == ["399 days ago"]
    clock.advance(EVERY_S)
    clock.advance(EVERY_S)
    assert rounds == [("main", NOW)] * 3  # a storage that fails does not end it
    await service.stopService()
    assert not clock.getDelayedCalls()
