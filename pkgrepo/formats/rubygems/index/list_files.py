"""
Long lists in temporary files, with their digests.

A list may be continued in the same file: bytes before its end never change, so that answers that are under way are not
disturbed. Two threads may continue it at a time if they write the same bytes.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Self

from attrs import define, frozen

from pkgrepo.gateway.responses.long_bodies import TemporaryFile
from pkgrepo.http.responses import Content

PIECE: Final = 1024 * 1024  # bytes copied at a time


@frozen(eq=False)
class ListFile:
    """
    The first ``size`` bytes of a file.

    ``md5`` and ``sha256`` are those of these bytes, as objects of ``hashlib`` that are only copied.
    """

    size: int
    md5: Any
    sha256: Any
    file: TemporaryFile

    def content(self) -> Content:
        """The list as the body of a response."""
        return self.file.content(self.size)

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Bytes of the list; all by default."""
        wanted = self.size - start if count is None else min(count, self.size - start)
        return self.file.read(start, wanted)


@define(eq=False)
class ListWriter:
    """Writes a list. Its methods block, and raise L{StorageFull} if there is no room for temporary files."""

    file: TemporaryFile
    size: int
    md5: Any
    sha256: Any

    @classmethod
    def new(cls) -> Self:
        """A list in a file of its own."""
        return cls(TemporaryFile(), 0, hashlib.md5(usedforsecurity=False), hashlib.sha256())

    @classmethod
    def continuing(cls, before: ListFile) -> Self:
        """A list that begins with another one, in the same file."""
        return cls(before.file, before.size, before.md5.copy(), before.sha256.copy())

    @classmethod
    def copying(cls, before: ListFile) -> Self:
        """A list that begins with another one, in a file of its own."""
        file, done = TemporaryFile(), 0
        while done < before.size:
            data = before.read(done, PIECE)
            file.write(data, done)
            done += len(data)
        return cls(file, before.size, before.md5.copy(), before.sha256.copy())

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        self.file.write(data, self.size)
        self.md5.update(data)
        self.sha256.update(data)
        self.size += len(data)

    def end(self) -> ListFile:
        """The list as written so far. Nothing may be added any more."""
        return ListFile(self.size, self.md5, self.sha256, self.file)
