"""The grammars of byte ranges."""

from __future__ import annotations

import pytest

from pkgrepo.http.reading.ranges import ChunkRange, parse_chunk_range, render_received


@pytest.mark.parametrize("value", [b"0-99", b"bytes 0-99/200", b"bytes=0-99", b"0-99/*", b" 0-99 "])
def test_ranges_of_chunks_are_read_in_every_spelling(value: bytes) -> None:
    assert parse_chunk_range(value) == ChunkRange(0, 100)


@pytest.mark.parametrize("value", [b"", b"0", b"-5", b"5-", b"9-3", b"a-b", b"items 0-9"])
def test_malformed_ranges_are_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="first-last"):
        parse_chunk_range(value)


def test_nothing_received_is_told_as_a_range_too() -> None:
    assert [render_received(count) for count in (0, 1, 10)] == [b"0-0", b"0-0", b"0-9"]
