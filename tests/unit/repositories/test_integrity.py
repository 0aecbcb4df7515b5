"""Copies are compared with their digests when a process reads them for the first time."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.errors import BlobMissing, StorageFailed
from pkgrepo.repositories import integrity
from pkgrepo.repositories.integrity import (
    MOST_LONG,
    PIECE,
    PIECES,
    Damage,
    FirstReads,
    Turns,
    digest_of,
    find_damage,
)
from tests.support.repositories import RepositoryServices
from tests.unit.repositories.upkeep.test_gc import add_blob

BODY = b"0123456789" * 20_000


class Reads:
    """First reads of a store, and what they told of damage."""

    def __init__(self, world: RepositoryServices, locator: str) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.locator = locator
        self.path = Path(world.root) / "blobs" / locator
        self.store: Any = world.store
        self.first_reads = FirstReads(world.pools, self._told)

    def _told(self, _storage_id: int, sha256: str, locator: str, damage: Damage) -> Awaitable[None]:
        done: Deferred[None] = Deferred()
        self.told.append((sha256, locator, damage.finding))
        done.callback(None)
        return done

    async def check(self) -> None:
        await self.first_reads.check(self.store, 1, self.locator)

    def gate(self) -> Any:
        return self.first_reads.gate(self.store, 1, self.locator)

    def damage(self) -> None:
        data = bytearray(self.path.read_bytes())
        data[7] ^= 1
        self.path.chmod(0o644)
        self.path.write_bytes(data)


async def test_the_end_waits_until_the_bytes_were_compared(world: RepositoryServices) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)
    with closing(reads.gate()) as gate:
        assert (gate.available(len(BODY)), gate.available(10)) == (len(BODY) - 1, 9)
        await gate.wait()
        assert (gate.available(len(BODY)), gate.available(10)) == (len(BODY), 10)
    assert reads.gate() is None
    assert reads.told == []


async def test_damaged_bytes_are_never_whole(world: RepositoryServices) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)
    reads.damage()
    with closing(reads.gate()) as gate:
        for _ in range(2):
            with pytest.raises(BlobMissing):
                await gate.wait()
            assert gate.available(10) == 9
    assert {(sha256, locator) for sha256, locator, _ in reads.told} == {(reads.locator[3:67], reads.locator)}
    assert "its bytes have the digest" in reads.told[0][2]
    with pytest.raises(BlobMissing):
        await reads.check()
    with closing(reads.gate()) as gate, pytest.raises(BlobMissing):
        await gate.wait()


async def test_what_was_read_is_compared_at_once_and_a_part_of_it_by_the_file(world: RepositoryServices) -> None:
    whole, part, wrong = [Reads(world, (await add_blob(world, BODY + each)).locator) for each in (b"a", b"b", b"c")]
    await whole.first_reads.check_whole(whole.store, 1, whole.locator, BODY + b"a")
    assert whole.gate() is None
    await part.first_reads.check_whole(part.store, 1, part.locator, BODY)
    assert part.gate() is None
    wrong.damage()
    with pytest.raises(BlobMissing):
        await wrong.first_reads.check_whole(wrong.store, 1, wrong.locator, wrong.path.read_bytes())
    assert len(wrong.told) == 1


async def test_each_copy_is_compared_and_nothing_is_told_of_none(world: RepositoryServices) -> None:
    info = await add_blob(world, BODY)
    reads = Reads(world, info.locator)
    await reads.check()
    other = info.locator[:-1] + ("0" if info.locator[-1] != "0" else "1")
    with pytest.raises(BlobMissing):
        await reads.first_reads.check(reads.store, 1, other)
    with pytest.raises(BlobMissing):
        await reads.first_reads.check(reads.store, 1, "")
    assert [locator for _, locator, _ in reads.told] == [other]


OF_OTHERS = ["EACCES", "EMFILE", "ENOMEM", "ETIMEDOUT", "ESTALE", "ENOTCONN", "ENODEV", "EINTR", "EHOSTDOWN"]


@pytest.mark.parametrize("code", [getattr(errno, each) for each in OF_OTHERS])
async def test_an_error_of_the_process_or_the_storage_says_nothing_of_the_bytes(
    world: RepositoryServices, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)

    def refuse(*_: Any) -> Any:
        raise StorageFailed("main") from OSError(code, os.strerror(code))

    monkeypatch.setattr(reads.store, "open", refuse)
    with pytest.raises(StorageFailed):
        await reads.check()
    assert reads.told == []


async def test_blocks_that_cannot_be_read_are_damage(
    world: RepositoryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)

    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(integrity, "_read_on", fail)
    with pytest.raises(BlobMissing):
        await reads.check()
    assert len(reads.told) == 1


@pytest.mark.parametrize("gone", ["", "format", "blobs"])
async def test_no_copy_of_a_storage_that_is_away_is_lost(world: RepositoryServices, gone: str) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)
    root = Path(world.root)
    if gone == "format":  # as another empty disk in its place
        reads.path.unlink()
    (root / gone).rename(root.with_name("elsewhere"))
    with pytest.raises(StorageFailed):
        await reads.check()
    assert reads.told == []
    if gone == "format":
        (root / gone).write_text("pkgrepo blobs 1\nstorage another\n")
        with pytest.raises(StorageFailed):
            await reads.check()
        (root / gone).unlink()
    root.with_name("elsewhere").rename(root / gone)
    if gone == "format":
        with pytest.raises(BlobMissing):
            await reads.check()
        assert len(reads.told) == 1
    else:
        await reads.check()


async def test_what_the_disk_does_not_confirm_is_no_damage(
    world: RepositoryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = await add_blob(world, BODY)
    real, asked = digest_of, list[bool]()

    async def other_first(*args: Any, afresh: bool = False) -> str:
        asked.append(afresh)
        return await real(*args, afresh=afresh) if afresh else "0" * 64

    monkeypatch.setattr(integrity, "digest_of", other_first)
    store: Any = world.store
    assert await find_damage(world.pools, store, info.locator, info.sha256) is None
    assert asked == [False, True]


async def test_a_file_stays_open_while_a_thread_reads_it(
    world: RepositoryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = await add_blob(world, BODY)
    begun, go_on, seen = threading.Event(), threading.Event(), list[Any]()

    def slow(file: Any, _digest: Any) -> bool:
        seen.append(file)
        begun.set()
        go_on.wait(10)
        seen.append(file.closed)
        return False

    monkeypatch.setattr(integrity, "_read_on", slow)
    store: Any = world.store
    reading = Deferred.fromCoroutine(digest_of(world.pools, store, info.locator))
    assert begun.wait(10)
    reading.cancel()
    with pytest.raises(CancelledError):
        await reading
    go_on.set()
    await world.pools.wait_idle()
    assert (seen[1], seen[0].closed) == (False, True)


async def test_one_that_was_compared_and_is_lost_since_is_looked_at_again(world: RepositoryServices) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)
    await reads.check()
    reads.path.unlink()
    await reads.check()
    assert reads.told == []
    reads.first_reads.look_again(reads.store, 1, reads.locator)
    await world.pools.wait_idle()
    assert [locator for _, locator, _ in reads.told] == [reads.locator]


async def test_of_long_copies_few_are_read_at_once_and_those_first_that_had_the_least() -> None:
    turns, running, order = Turns(), dict[str, Deferred[bool]](), list[str]()

    def start(name: str, had: int) -> Deferred[bool]:
        def read() -> Deferred[bool]:
            order.append(name)
            running[name] = Deferred()
            return running[name]

        return Deferred.fromCoroutine(turns.take(had, read))

    asked = {f"long {n}": start(f"long {n}", 50) for n in range(MOST_LONG + 2)}
    asked |= {"short": start("short", 1), "new": start("new", 0), "left": start("left", 2)}
    assert order == [*(f"long {n}" for n in range(MOST_LONG)), "new"]
    asked["left"].addErrback(lambda failure: failure.trap(CancelledError) and None)
    asked["left"].cancel()
    while len(order) < MOST_LONG + 4:
        running.pop(next(iter(running))).callback(True)
    assert order[MOST_LONG + 1 :] == ["short", f"long {MOST_LONG}", f"long {MOST_LONG + 1}"]
    for each in running.values():
        each.callback(False)
    assert await asked["short"]
    last = start("last", 9)
    running["last"].callback(False)
    assert not await last


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE * PIECES, PIECE * PIECES + 1])
async def test_the_digest_is_of_all_bytes(world: RepositoryServices, size: int) -> None:
    info = await add_blob(world, b"x" * size)
    store: Any = world.store
    assert await digest_of(world.pools, store, info.locator) == info.sha256
    assert await find_damage(world.pools, store, info.locator, info.sha256) is None
