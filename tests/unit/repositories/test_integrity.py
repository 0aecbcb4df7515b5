"""Copies are compared with their digests when a process reads them for the first time."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.errors import BlobMissing, StorageFailed
from pkgrepo.repositories.integrity import PIECE, PIECES, Damage, FirstReads, digest_of, find_damage
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
    gate = reads.gate()
    for _ in range(2):
        with pytest.raises(BlobMissing):
            await gate.wait()
        assert gate.available(10) == 9
    assert {(sha256, locator) for sha256, locator, _ in reads.told} == {(reads.locator[3:67], reads.locator)}
    assert "its bytes have the digest" in reads.told[0][2]
    with pytest.raises(BlobMissing):
        await reads.check()
    assert reads.gate() is not None


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


async def test_an_error_of_the_process_says_nothing_of_the_bytes(
    world: RepositoryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(world, (await add_blob(world, BODY)).locator)

    def refuse(*_: Any) -> Any:
        raise StorageFailed("main") from OSError(24, "Too many open files")

    monkeypatch.setattr(reads.store, "open", refuse)
    with pytest.raises(StorageFailed):
        await reads.check()
    assert reads.told == []


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE * PIECES, PIECE * PIECES + 1])
async def test_the_digest_is_of_all_bytes(world: RepositoryServices, size: int) -> None:
    info = await add_blob(world, b"x" * size)
    store: Any = world.store
    assert await digest_of(world.pools, store, info.locator) == info.sha256
    assert await find_damage(world.pools, store, info.locator, info.sha256) is None
