"""Bytes that no compression makes smaller, of any length and the same in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

BLOCK = 1 << 20  # bytes that repeat; far above the 32 KiB that deflate looks back


def filler(size: int) -> Iterator[memoryview]:
    """This many bytes, in pieces of a block that is in memory once."""
    block = memoryview(_block())
    while size > 0:
        yield block[:size]
        size -= BLOCK


@lru_cache(maxsize=1)
def _block() -> bytes:
    return random.Random(20240101).randbytes(BLOCK)
