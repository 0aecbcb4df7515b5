"""Where a body ends, and how small its chunks may be."""

from __future__ import annotations

import pytest

from pkgrepo.http.reading.body import BodyFraming, MalformedChunks
from pkgrepo.untrusted.chunks import FREE_BYTES, LEAST_AVERAGE

LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("read", [1, 7, 4096, 65536])
def test_chunks_come_out_whole_however_they_are_cut(read: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    wire = b"".join(chunk(bytes([n % 256]) * (n % 97 + 1)) for n in range(200)) + LAST + b"GET /next"
    rest = b""
    for at in range(0, len(wire), read):
        rest += wire[at : at + read] if framing.ended else framing.take(wire[at : at + read])
    assert framing.ended
    assert rest == b"GET /next"
    assert b"".join(fed) == b"".join(bytes([n % 256]) * (n % 97 + 1) for n in range(200))


def test_what_follows_the_last_chunk_in_a_large_read_comes_back_whole() -> None:
    framing = BodyFraming(None, lambda _: None)
    following = b"GET / HTTP/1.1\r\n" * 1000
    assert framing.take(chunk(b"body") + LAST + following) == following


def test_small_chunks_of_one_read_are_handed_on_in_one_piece() -> None:
    fed: list[bytes] = []
    BodyFraming(None, fed.append).take(chunk(b"x") * 900)
    assert fed == [b"x" * 900]


def test_a_read_from_within_a_chunk_is_handed_on_as_it_is() -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    framing.take(b"2000\r\n")
    read = b"x" * 4096
    framing.take(read)
    assert fed[0] is read


@pytest.mark.parametrize("read", [7, 4096, 65_536])
def test_a_body_of_up_to_a_mebibyte_comes_in_chunks_of_any_size(read: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    wire = chunk(b"x") * (FREE_BYTES if read > 7 else 50_000) + LAST
    for at in range(0, len(wire), read):
        framing.take(wire[at : at + read])
    assert framing.ended
    assert set(b"".join(fed)) == set(b"x")
    assert sum(map(len, fed)) == wire.count(b"x")


@pytest.mark.parametrize("size", [1, 15])
def test_tiny_chunks_of_a_longer_body_are_refused(size: int) -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    free = FREE_BYTES // size
    framing.take(chunk(b"x" * size) * free)
    with pytest.raises(MalformedChunks, match="smaller than 16 bytes"):
        framing.take(chunk(b"x" * size) * 2)
    assert sum(map(len, fed)) == (free + 2) * size


def test_many_chunks_of_a_usual_size_are_fine() -> None:
    fed: list[bytes] = []
    framing = BodyFraming(None, fed.append)
    framing.take(chunk(b"x" * LEAST_AVERAGE) * (2 * FREE_BYTES // LEAST_AVERAGE) + LAST)
    assert framing.ended
    assert sum(map(len, fed)) == 2 * FREE_BYTES
