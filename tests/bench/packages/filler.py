"""Incompressible bytes of any length, equal in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

VERSIONS = 10  # of each gem and conda package with which a catalog is filled
BASE = 10_000  # packages that are published before a catalog is multiplied, and the number of the first one
BLOCK = 1 << 20  # bytes after which the data repeat; far more than deflate's window of 32 KiB


def filler(size: int) -> Iterator[memoryview]:
    """Yield this number of bytes, in slices of one block."""
    block = memoryview(_block())
    while size > 0:
        yield block[:size]
        size -= BLOCK


@lru_cache(maxsize=1)
def _block() -> bytes:
    return random.Random(20240101).randbytes(BLOCK)
