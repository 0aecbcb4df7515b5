"""
Long lists in temporary files, with their digests.

A list may be continued in the same file: bytes before its end never change, so that answers that are under way are not
disturbed. Two threads may continue it at a time if they write the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from typing import IO, Any, Final, Self

from attrs import define, frozen

from pkgrepo.errors import StorageFull
from pkgrepo.http.answers import Content

PIECE: Final = 1024 * 1024  # bytes copied at a time


@frozen(eq=False)
class ListFile:
    """
    The first ``size`` bytes of a file, which is closed with its last reference.

    ``md5`` and ``sha256`` are those of these bytes, as objects of ``hashlib`` that are only copied.
    """

    size: int
    md5: Any
    sha256: Any
    file: IO[bytes]

    def content(self) -> Content:
        """The list as the body of an answer."""
        return Content(self.size, open=lambda: os.dup(self.file.fileno()))

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Bytes of the list; all by default."""
        wanted = self.size - start if count is None else min(count, self.size - start)
        return os.pread(self.file.fileno(), wanted, start)


@define(eq=False)
class ListWriter:
    """Writes a list. Its methods block, and raise L{StorageFull} if there is no room for temporary files."""

    file: IO[bytes]
    size: int
    md5: Any
    sha256: Any

    @classmethod
    def new(cls) -> Self:
        """A list in a file of its own."""
        return cls(_temporary(), 0, hashlib.md5(usedforsecurity=False), hashlib.sha256())

    @classmethod
    def continuing(cls, before: ListFile) -> Self:
        """A list that begins with another one, in the same file."""
        return cls(before.file, before.size, before.md5.copy(), before.sha256.copy())

    @classmethod
    def copying(cls, before: ListFile) -> Self:
        """A list that begins with another one, in a file of its own."""
        file, done = _temporary(), 0
        while done < before.size:
            data = before.read(done, PIECE)
            _write(file, data, done)
            done += len(data)
        return cls(file, before.size, before.md5.copy(), before.sha256.copy())

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        _write(self.file, data, self.size)
        self.md5.update(data)
        self.sha256.update(data)
        self.size += len(data)

    def end(self) -> ListFile:
        """The list as written so far. Nothing may be added any more."""
        return ListFile(self.size, self.md5, self.sha256, self.file)


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _write(file: IO[bytes], data: bytes, start: int) -> None:
    try:
        while data:
            written = os.pwrite(file.fileno(), data, start)
            data, start = data[written:], start + written
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StorageFull("temporary files") from error
