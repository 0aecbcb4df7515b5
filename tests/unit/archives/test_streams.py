"""Decompression of gzip files: in pieces, with several streams, with limits; malformed files are refused."""

import gzip
import zlib

import pytest

from pkgrepo.archives.source import LIMITS, ArchiveLimits, Source
from pkgrepo.archives.streams import MOST_STREAMS, Gunzip
from pkgrepo.errors import Invalid

DATA = bytes(range(256)) * 5000  # more than a piece
PIECE = LIMITS.piece


def unpack(data: bytes, limits: ArchiveLimits = LIMITS) -> Gunzip:
    return Gunzip(Source(data, "x.tgz", limits))


def everything(stream: Gunzip) -> bytes:
    return b"".join(iter(lambda: stream.read(100_000), b""))


@pytest.mark.parametrize("count", [1, 4095, PIECE, PIECE + 1, len(DATA), len(DATA) + 1])
def test_a_read_returns_the_requested_number_of_bytes(count: int) -> None:
    stream = unpack(gzip.compress(DATA))
    assert stream.read(count) == DATA[:count]
    assert stream.read(10) == DATA[count : count + 10]


def test_skipped_bytes_are_counted_and_not_returned() -> None:
    stream = unpack(gzip.compress(DATA))
    assert stream.skip(PIECE + 7) == PIECE + 7
    assert stream.read(5) == DATA[PIECE + 7 : PIECE + 12]
    assert stream.skip(len(DATA)) == len(DATA) - PIECE - 12
    assert (stream.read(1), stream.skip(1)) == (b"", 0)


@pytest.mark.parametrize("padding", [0, 1, 511, PIECE + 3])
def test_streams_are_concatenated_and_zeros_are_padding(padding: int) -> None:
    data = gzip.compress(b"one") + bytes(padding) + gzip.compress(b"two") + bytes(padding)
    assert everything(unpack(data)) == b"onetwo"


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1])
def test_a_stream_may_begin_where_a_piece_ends(size: int) -> None:
    first = gzip.compress(b"first")
    first += bytes(size - len(first))  # the next stream's two first bytes come in one piece or in two
    assert everything(unpack(first + gzip.compress(b"second"))) == b"firstsecond"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is truncated"),
        (gzip.compress(DATA)[:-1], "is truncated"),
        (gzip.compress(DATA)[:100], "is truncated"),
        (b"PK\x03\x04 not gzip", "is damaged, or not a gzip archive"),
        (gzip.compress(DATA)[:-6] + b"\0\0\0\0\0\0", "is damaged, or not a gzip archive"),
        (gzip.compress(b"one") + b"more", "has data after the end of its gzip archive"),
        (gzip.compress(b"one") + b"\x1f", "has data after the end of its gzip archive"),
        (gzip.compress(b"one") + bytes(PIECE) + b"more", "has data after the end of its gzip archive"),
        (zlib.compress(b"one"), "is damaged, or not a gzip archive"),
    ],
)
def test_a_malformed_gzip_file_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(Invalid, match=f"x.tgz {sentence}"):
        everything(unpack(data))


def test_the_number_of_streams_is_limited() -> None:
    empty = gzip.compress(b"")
    assert everything(unpack(empty * MOST_STREAMS)) == b""
    with pytest.raises(Invalid, match=f"more than {MOST_STREAMS} gzip streams"):
        everything(unpack(empty * (MOST_STREAMS + 1)))


def test_the_decompressed_size_is_limited() -> None:
    limits = ArchiveLimits(free_size=len(DATA), ratio=1)
    assert everything(unpack(gzip.compress(DATA), limits)) == DATA
    stream = unpack(gzip.compress(DATA) + gzip.compress(b"x"), limits)
    with pytest.raises(Invalid, match=f"unpack to more than {len(DATA)} bytes"):
        stream.skip(len(DATA) + 1)


def test_at_most_a_piece_is_decompressed_at_once() -> None:
    stream = unpack(gzip.compress(bytes(10**6)), ArchiveLimits(piece=4096))
    stream.read(1)
    assert len(stream._decompressed) < 4096
    assert stream.skip(10**6) == 10**6 - 1


@pytest.mark.parametrize(
    ("rest", "zeros"), [(b"", True), (bytes(PIECE * 2), True), (b"\1", False), (bytes(PIECE * 2) + b"\1", False)]
)
def test_only_zeros_follow(rest: bytes, zeros: bool) -> None:
    stream = unpack(gzip.compress(b"data" + rest))
    stream.read(4)
    assert stream.only_zeros_follow() is zeros
