"""Chunked bodies: what is taken, and what is refused because others might read it otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.web.http import _ChunkedTransferDecoder

from pkgrepo.untrusted.chunks import LINE_LIMIT, TRAILER_LIMIT, ChunkDecoder, MalformedChunks


def decode(*reads: bytes) -> tuple[bytes, bytes | None]:
    """The content, and what follows the body, None when its end has not come."""
    chunks, content, rest = ChunkDecoder(), bytearray(), b""
    for read in reads:
        pieces: list[memoryview | bytes] = []
        end = 0
        try:
            end = 0 if chunks.ended else chunks.decode(read, pieces)
        finally:
            content += b"".join(pieces)
        rest += read[end:] if chunks.ended else b""
    return bytes(content), rest if chunks.ended else None


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize(
    ("wire", "content"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"5;name=value\r\nhello\r\n0;last\r\n\r\n", b"hello"),
        (b'5 ; name="a b"\r\nhello\r\n0\r\n\r\n', b"hello"),
        (b"a\r\n0123456789\r\nA\r\n0123456789\r\n00\r\n\r\n", b"0123456789" * 2),
        (b"2\r\n\r\n\r\n000\r\n\r\n", b"\r\n"),
        (b"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", b"x"),
        (b"0\r\n\r\n", b""),
    ],
)
def test_chunks_are_decoded_whole_and_byte_by_byte(wire: bytes, content: bytes) -> None:
    assert decode(wire + b"more") == (content, b"more")
    assert decode(*bytewise(wire), b"more") == (content, b"more")


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"\r\n",
        b"-5\r\nhello",
        b"+5\r\nhello",
        b"0x5\r\nhello",
        b"5 \r\nhello",
        b" 5\r\nhello",
        b"1_0\r\nhello",
        b"\xb25\r\nhello",
        b"5\nhello",
        b"5\r\r\nhello",
        b"5;a\rb\r\nhello",
        b"5;a\0b\r\nhello",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello!",
        b"5\r\nhello\r\r\n",
        b"0\r\n\n",
        b"0\r\nA: b\n\r\n",
        b"0\r\nA: b\r\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"5;" + b"a" * LINE_LIMIT + b"\r\n",
        b"0\r\n" + b"a" * TRAILER_LIMIT + b"\r\n",
        b"0\r\n" + b"A: b\r\n" * TRAILER_LIMIT,
    ],
)
def test_what_others_might_read_otherwise_is_refused(wire: bytes) -> None:
    with pytest.raises(MalformedChunks):
        decode(wire)
    with pytest.raises(MalformedChunks):
        decode(*bytewise(wire))


@pytest.mark.parametrize("wire", [b"5" * 16, b"5;" + b"a" * LINE_LIMIT, b"0\r\n" + b"a" * (TRAILER_LIMIT + 1)])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(wire: bytes) -> None:
    with pytest.raises(MalformedChunks):
        decode(wire, b"a" * LINE_LIMIT, b"a" * LINE_LIMIT)


def test_what_is_good_before_a_mistake_is_given_out() -> None:
    pieces: list[memoryview | bytes] = []
    with pytest.raises(MalformedChunks):
        ChunkDecoder().decode(b"5\r\nhello\r\nx\r\n", pieces)
    assert pieces == [b"hello"]


def test_half_a_line_end_is_no_size() -> None:
    """Found by its place: what follows it is looked for where an earlier line ended."""
    wire = b"2\r\n\r\n\r\n" + b"1\r\nx\r\n0\r\n\r\n"
    for cut in range(len(wire)):
        assert decode(wire[:cut], wire[cut:]) == (b"\r\nx", b"")


@given(st.lists(st.binary(min_size=1, max_size=80), max_size=8), st.binary(max_size=8), st.integers(1, 50))
def test_twisted_reads_the_same(parts: list[bytes], following: bytes, step: int) -> None:
    wire = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    theirs: list[bytes] = []
    rest: list[bytes] = []
    decoder = _ChunkedTransferDecoder(theirs.append, rest.append)
    decoder.dataReceived(wire + following)
    assert decode(*(wire[at : at + step] for at in range(0, len(wire), step)), following) == (
        b"".join(theirs),
        rest[0],
    )
