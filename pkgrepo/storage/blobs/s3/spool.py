"""
Temporary files, through which bytes of uploads pass, and copies that a program wants as files.

Such a file has no name, so nothing of it is left after a crash. Its methods block.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from pkgrepo.errors import StorageFull
from pkgrepo.s3.requests import Body, digest_body
from pkgrepo.small_files import write_at
from pkgrepo.storage.blobs.durability import forget
from pkgrepo.storage.free_space import free_and_total, low_water


class Spool:
    """Makes temporary files in ``folder`` while more than ``low`` bytes are free there; None for the default mark."""

    def __init__(self, folder: Path, *, low: int | None) -> None:
        self._folder = folder
        self._low = low

    def check_room(self, storage: str, size: int) -> None:
        """Check the room for ``size`` bytes. :raises StorageFull: there is not enough; :raises OSError: unknown"""
        free, total = free_and_total(self._folder)
        if free - size < low_water(total, self._low):
            raise StorageFull(storage)

    def new_file(self) -> SpoolFile:
        """Return a new file, which is created with its first bytes."""
        return SpoolFile(self._folder)


class SpoolFile:
    """A temporary file, see L{ReadableFile}. It is closed by ``release``, and then empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd: int | None = None
        self._error: OSError | None = None
        self.size = 0

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self.check()
        try:
            write_at(self._ready(), data, self.size)
        except OSError as error:
            self._error = error
            raise
        self.size += len(data)

    def check(self) -> None:
        """Check that no call has failed. :raises OSError: the first error"""
        if self._error is not None:
            raise self._error

    def read(self, start: int, count: int) -> bytes:
        """Return ``count`` bytes that were written before; fewer only at the end."""
        self.check()
        return os.pread(self._ready(), count, start)

    def body(self, start: int, count: int) -> Body:
        """Return ``count`` bytes from ``start`` as the body of a request. :raises OSError: they cannot be read"""
        pieces = []
        while count:
            piece = self.read(start, count)
            if not piece:
                raise OSError("a temporary file has become shorter")
            pieces.append(piece)
            start += len(piece)
            count -= len(piece)
        return digest_body(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def forget(self, start: int, count: int) -> None:
        """Free the space of bytes that are not read again; the size stays."""
        if self._fd is not None:
            forget(self._fd, start, count)

    def duplicate(self) -> int:
        """Return a new descriptor of the file; the caller closes it."""
        return os.dup(self._ready())

    def release(self) -> None:
        """Close the file; also twice."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)

    def _ready(self) -> int:
        if self._fd is None:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._fd = os.dup(file.fileno())
        return self._fd
