"""Incompressible bytes of any length, equal in every run."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

VERSIONS = 10  # of each gem and conda package with which a catalog is filled
BASE = 10_000  # packages that are published before a catalog is multiplied, and the number of the first one
BLOCK = 1 << 20  # bytes after which the data repeat; far more than deflate's window of 32 KiB


class Content(ABC):
    """
    Bytes that are made whenever they are read.

    Nothing but the filler's block is ever in memory, so that a big one costs the loading side next to nothing.
    """

    size: int

    @property
    @abstractmethod
    def filename(self) -> str:
        """What their file is called."""

    @abstractmethod
    def chunks(self) -> Iterator[bytes | memoryview]:
        """The bytes, in order."""

    def read(self) -> bytes:
        """All bytes at once, for small ones."""
        return b"".join(self.chunks())

    @cached_property
    def sha256(self) -> str:
        """The digest, lower-case hex."""
        sha256 = hashlib.sha256()
        for part in self.chunks():
            sha256.update(part)
        return sha256.hexdigest()

    def ensure(self, folder: Path) -> Path:
        """The path of their file in a folder, where they are written unless it is there already."""
        path = folder / self.filename
        if not path.exists() or path.stat().st_size != self.size:
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            with partial.open("wb") as file:
                file.writelines(self.chunks())
            partial.replace(path)
        return path


def filler(size: int) -> Iterator[memoryview]:
    """Yield this number of bytes, in slices of one block."""
    block = memoryview(_block())
    while size > 0:
        yield block[:size]
        size -= BLOCK


@lru_cache(maxsize=1)
def _block() -> bytes:
    return random.Random(20240101).randbytes(BLOCK)
