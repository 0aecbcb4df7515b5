"""Entries of a tar archive are read while it arrives, in whatever pieces."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import pytest

from pkgrepo.archives.arriving import ArrivingTar
from pkgrepo.errors import Invalid
from tests.support.images import make_tar

FILES = {"a.txt": b"a" * 700, "empty": b"", "folder/" + "n" * 200: b"long name", "b.bin": bytes(range(256)) * 40}


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def contents(data: bytes, size: int = 4096) -> dict[str, bytes]:
    tar = ArrivingTar(pieces(data, size), "x.tar")
    return {each.name: await tar.read(100_000) async for each in tar.members()}


@pytest.mark.parametrize("size", [1, 100, 512, 100_000])
@pytest.mark.parametrize("packed", [False, True])
async def test_all_entries_are_read(size: int, packed: bool) -> None:
    data = make_tar(FILES)
    assert await contents(gzip.compress(data) if packed else data, size) == FILES


async def test_what_is_not_read_is_skipped() -> None:
    tar = ArrivingTar(pieces(make_tar(FILES), 300), "x.tar")
    assert [(each.name, each.size) async for each in tar.members()] == [
        (name, len(data)) for name, data in FILES.items()
    ]


async def test_several_gzip_streams_are_one_archive() -> None:
    data = make_tar(FILES)
    assert await contents(gzip.compress(data[:900]) + gzip.compress(data[900:]), 7) == FILES


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is truncated"),
        (b"no archive" * 100, "is not a tar archive"),
        (make_tar(FILES)[:1000], "is truncated"),
        (make_tar(FILES) + b"more", "has data after the end"),
        (gzip.compress(make_tar(FILES))[:-30], "is truncated"),
        (gzip.compress(make_tar(FILES)) + b"more", "has data after the end"),
        (gzip.compress(make_tar({"zeros": bytes(70_000_000)}), 9), "far more than it is packed"),
    ],
)
async def test_damaged_archives_are_refused(data: bytes, why: str) -> None:
    tar = ArrivingTar(pieces(data, 4096), "x.tar")
    with pytest.raises(Invalid, match=why):
        async for _ in tar.members():
            pass


async def test_an_entry_that_is_too_large_for_memory_is_refused() -> None:
    tar = ArrivingTar(pieces(make_tar(FILES), 4096), "x.tar")
    async for _ in tar.members():
        with pytest.raises(Invalid, match="more than 100 bytes"):
            await tar.read(100)
        return
