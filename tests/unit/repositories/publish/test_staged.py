"""Staged blobs: committed while they are inspected, and removed if nobody claims them."""

import os
import threading

import pytest
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.errors import Invalid, StorageFailed
from tests.support.inprocess_server import until
from tests.support.repositories import chunks

SMALL = b"x" * 1000
LARGE = bytes(range(256)) * 4096  # 1 MiB, which is not kept in memory


@pytest.fixture(params=[SMALL, LARGE], ids=["small", "large"])
def content(request):
    return request.param


def read(file):
    """All of a blob, as a format is given it."""
    return file if isinstance(file, bytes) else os.pread(file, len(LARGE) + 1, 0)


class Look:
    """A format's look into a blob, which lasts until the test says so."""

    def __init__(self, verdict=None):
        self.begun = threading.Event()
        self.enough = threading.Event()
        self.descriptor = None
        self._verdict = verdict

    def __call__(self, file):
        self.descriptor = None if isinstance(file, bytes) else file
        self.begun.set()
        self.enough.wait(60)
        if self._verdict is not None:
            raise self._verdict
        return read(file)


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


async def test_a_single_file_is_committed_while_it_is_inspected(world, content):
    look = Look()
    async with world.content.stage(world.repository) as staged:
        info = await staged.receive(chunks(content))
        assert world.copies() == []
        looking = Deferred.fromCoroutine(staged.inspect(world.pools.cpu, info, look, alone=True))
        await until(world.copies)
        look.enough.set()
        assert await looking == content
        claim = staged.claim([info.locator])
        await claim.commit()
    assert world.copies() == [info.locator]


async def test_a_small_file_is_committed_together_with_its_companions(world, monkeypatch):
    together = []
    commit = world.store.commit_together

    async def committing(uploads):
        together.append(len(uploads))
        await commit(uploads)

    monkeypatch.setattr(world.store, "commit_together", committing)
    async with world.content.stage(world.repository) as staged:
        first = await staged.receive(chunks(SMALL))
        assert await staged.inspect(world.pools.cpu, first, read) == SMALL
        second = await staged.store(b"what comes with it")
        await staged.claim([first.locator, second.locator]).commit()
    assert together == [2]
    assert world.copies() == sorted([first.locator, second.locator])


async def test_the_commit_of_a_large_file_begins_before_its_companions_arrive(world):
    async with world.content.stage(world.repository) as staged:
        first = await staged.receive(chunks(LARGE))
        assert await staged.inspect(world.pools.cpu, first, read) == LARGE
        await until(world.copies)
        second = await staged.store(b"what comes with it")
        await staged.claim([first.locator, second.locator]).commit()
    assert world.copies() == sorted([first.locator, second.locator])


async def test_a_blob_that_is_refused_is_removed(world, content):
    look = Look(Invalid("it is nothing"))
    look.enough.set()

    async def request():
        async with world.content.stage(world.repository) as staged:
            info = await staged.receive(chunks(content))
            await staged.inspect(world.pools.cpu, info, look, alone=True)

    with pytest.raises(Invalid, match="it is nothing"):
        await request()
    assert world.copies() == []
    assert list((world.root / "uploads").iterdir()) == []


async def test_a_blob_that_is_refused_after_its_commit_is_removed(world, content):
    async with world.content.stage(world.repository) as staged:
        staged.commit_early(await staged.receive(chunks(content)))
        await until(world.copies)
    assert world.copies() == []


async def test_a_client_that_disconnects_during_the_inspection_leaves_nothing(world, content):
    look = Look()

    async def request():
        async with world.content.stage(world.repository) as staged:
            info = await staged.receive(chunks(content))
            await staged.inspect(world.pools.cpu, info, look, alone=True)

    running = Deferred.fromCoroutine(request())
    await until(look.begun.is_set)
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    assert world.copies() == []
    if look.descriptor is not None:
        assert is_open(look.descriptor)  # the thread reads on
    look.enough.set()
    await world.pools.wait_idle()
    assert look.descriptor is None or not is_open(look.descriptor)


async def test_one_failed_commit_removes_all_files_of_the_release(world, monkeypatch):
    commit = world.store.commit_together

    async def committing(uploads):
        if len(uploads[0].data) == len(SMALL):
            for each in uploads:
                await each.abort()
            raise StorageFailed("main")
        await commit(uploads)

    monkeypatch.setattr(world.store, "commit_together", committing)
    async with world.content.stage(world.repository) as staged:
        failing = await staged.receive(chunks(SMALL))
        staged.commit_early(failing)
        sound = await staged.store(b"sound")
        with pytest.raises(StorageFailed):
            await staged.claim([failing.locator, sound.locator]).commit()
        assert world.copies() == []


async def test_an_unclaimed_failed_commit_is_not_logged(world, monkeypatch):
    async def fail(_uploads):
        raise StorageFailed("main")

    monkeypatch.setattr(world.store, "commit_together", fail)
    async with world.content.stage(world.repository) as staged:
        staged.commit_early(await staged.receive(chunks(SMALL)))
    assert world.copies() == []
