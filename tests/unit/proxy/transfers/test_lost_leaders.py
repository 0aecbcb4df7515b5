"""
A process goes on with the transfer of one that ends between the verification of its file and its record.

Both are in this process, over one folder. The leader is killed by taking its lease and its notices away.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from pkgrepo.errors import StorageFailed, UpstreamUnavailable
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.proxy.transfers.download import Download, Fields
from pkgrepo.proxy.transfers.receiving import Context
from pkgrepo.proxy.transfers.sharing import Sharing
from pkgrepo.proxy.transfers.transfer import Transfer
from pkgrepo.repositories.publish.staged import Staged
from tests.support.blob_stores import FilesystemCase
from tests.support.inprocess_server import until
from tests.support.led_transfers import LEASE, PLACE, Bus, Leases

BODY = os.urandom(600_000)
SHA256 = hashlib.sha256(BODY).hexdigest()
SHA1 = hashlib.sha1(BODY, usedforsecurity=False).hexdigest()


class Answer:
    """An upstream's answer, which pauses in the middle until ``more`` fires."""

    status = 200
    length = len(BODY)
    framed = True

    def __init__(self, more: Deferred[None]) -> None:
        self.headers = Fields({"etag": '"e"'})
        self._more = more

    async def chunks(self) -> AsyncIterator[bytes]:
        yield BODY[:400_000]
        await self._more
        yield BODY[400_000:]


class Process:
    """One of the processes. ``recording`` holds its records back until it fires."""

    def __init__(self, world: World, case: FilesystemCase, store: Any) -> None:
        self.world = world
        self.line = world.bus.join()
        self.leases = Leases(world.taken)
        self.recording: Deferred[None] = Deferred()
        self.recorded = 0
        sharing = Sharing(self.leases, self.line, reactor)
        world.bus.subscribe(self.line, sharing.receive)
        context = Context(reactor=reactor, sharing=sharing)
        download = Download(
            route="main",
            open=self._open,
            stage=lambda: _stage(store),
            record=self._record,
            find=self._find,
            algorithms=("sha1",),
            digests_of=lambda row: {**row.digests, "sha256": row.sha256},
        )
        self.transfer = Transfer(download, PLACE, path="b.bin", context=context, on_end=lambda: None)

    def start(self) -> None:
        self.transfer.start(_permit())

    def kill(self) -> None:
        """Let the others see what they see of a process that was killed."""
        self.world.bus.cut(self.line)
        del self.world.taken[LEASE]

    @asynccontextmanager
    async def _open(self, _: Mapping[str, str]) -> AsyncIterator[Any]:
        self.world.asked += 1
        yield Answer(self.world.more)

    async def _find(self) -> BlobInfo | None:
        return self.world.row

    async def _record(self, staged: Staged, blob: BlobInfo, headers: Any) -> BlobInfo:
        await self.recording
        assert headers.get("ETag") == '"e"'
        await staged.claim([blob.locator]).commit()
        self.recorded += 1
        self.world.row = blob
        return blob


class World:
    """What the processes share. ``row`` is the record of the file; ``asked`` counts the requests to the upstream."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.taken: dict[str, Leases] = {}
        self.row: BlobInfo | None = None
        self.asked = 0
        self.more: Deferred[None] = Deferred()


@asynccontextmanager
async def _stage(store: Any) -> AsyncIterator[Staged]:
    staged = Staged("main", store)
    try:
        yield staged
    finally:
        await staged.clear()


@asynccontextmanager
async def _permit() -> AsyncIterator[None]:
    yield


@pytest_twisted.async_yield_fixture
async def make_process(tmp_path: Path) -> Any:
    """Make processes of one world."""
    case, world = FilesystemCase(tmp_path / "store"), World()
    first = await case.start()
    made: list[Process] = []

    def make() -> Process:
        made.append(Process(world, case, first))
        return made[-1]

    yield make
    for each in made:
        if not each.recording.called:
            each.recording.errback(StorageFailed("main"))
        await until(lambda each=each: each.transfer._work is None)  # type: ignore[misc]
    await case.stop()


def body_of(body: Any) -> bytes:
    """What a reader has of a transfer that is verified."""
    assert isinstance(body, ArrivingBody)
    assert body.available(body.size) == body.size
    descriptor = body.open()
    try:
        return os.pread(descriptor, body.size + 1, 0)
    finally:
        os.close(descriptor)
        body.close()


async def follow(make: Callable[[], Process]) -> tuple[Process, Process, Any]:
    """A leader and a follower, which has a reader with the first bytes."""
    leader, follower = make(), make()
    leader.start()
    reader = Deferred.fromCoroutine(leader.transfer.content())
    await until(lambda: leader.transfer.available)
    follower.start()
    body = await follower.transfer.content()
    assert isinstance(body, ArrivingBody)
    (await reader).close()
    return leader, follower, body


async def test_what_a_leader_has_verified_its_follower_records_without_the_upstream(make_process: Any) -> None:
    leader, follower, body = await follow(make_process)
    waiting = Deferred.fromCoroutine(follower.transfer.finish())
    leader.world.more.callback(None)
    assert (await follower.transfer.verify())["sha1"] == SHA1
    leader.kill()
    follower.recording.callback(None)
    row = await waiting
    assert (row.sha256, row.size, row.digests["sha1"]) == (SHA256, len(BODY), SHA1)
    assert body_of(body) == BODY
    assert (leader.world.asked, leader.recorded, follower.recorded) == (1, 0, 1)
    assert await follower.transfer.content() == row


async def test_readers_of_a_file_that_was_recorded_unnoticed_get_it_when_it_is_the_same(make_process: Any) -> None:
    leader, follower, body = await follow(make_process)
    leader.world.bus.cut(leader.line)
    leader.recording.callback(None)
    waiting = Deferred.fromCoroutine(follower.transfer.finish())
    leader.world.more.callback(None)
    row = await waiting
    assert row is leader.world.row
    assert body_of(body) == BODY
    assert (leader.world.asked, follower.recorded) == (1, 0)


async def test_readers_of_another_file_than_was_recorded_get_an_error(make_process: Any) -> None:
    leader, follower, body = await follow(make_process)
    waiting = Deferred.fromCoroutine(follower.transfer.finish())
    other = hashlib.sha256(b"other").hexdigest()
    leader.world.row = BlobInfo(other, len(BODY), "x", {})
    leader.kill()
    with pytest.raises(UpstreamUnavailable, match="nothing shows that the whole was read"):
        await waiting
    body.close()
    leader.world.more.callback(None)
