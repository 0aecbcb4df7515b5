"""A body whose parts follow each other."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.gateway.bodies import BodyParts


async def chunks(*given: bytes) -> AsyncIterator[bytes]:
    for each in given:
        yield each


@pytest.mark.parametrize("given", [(b"abcdef",), (b"a", b"", b"bcd", b"ef"), (b"ab", b"cdef")])
async def test_parts_are_read_whatever_the_chunks_are(given: tuple[bytes, ...]) -> None:
    parts = BodyParts(chunks(*given))
    assert await parts.read(2) == b"ab"
    assert await parts.read(0) == b""
    assert b"".join([piece async for piece in parts.pieces(3)]) == b"cde"
    with pytest.raises(Invalid, match="goes on"):
        await parts.end()
    assert await parts.read(1) == b"f"
    await parts.end()


async def test_a_body_that_ends_too_early_is_refused() -> None:
    with pytest.raises(Invalid, match="ends before"):
        await BodyParts(chunks(b"ab")).read(3)
