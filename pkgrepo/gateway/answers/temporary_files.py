"""Long documents in temporary files, which are sent without passing through memory."""

from __future__ import annotations

import errno
import os
import tempfile

from pkgrepo.errors import StorageFull
from pkgrepo.http.answers import Content


class TemporaryFile:
    """A file without a name, which is closed with its last reference. Its methods block."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its last reference

    def write(self, data: bytes, start: int) -> None:
        """Write bytes at an offset. :raises StorageFull: there is no room for temporary files"""
        try:
            while data:
                written = os.pwrite(self._file.fileno(), data, start)
                data, start = data[written:], start + written
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull("temporary files") from error

    def read(self, start: int, count: int) -> bytes:
        """At most ``count`` bytes from an offset; fewer at the end of the file."""
        return os.pread(self._file.fileno(), count, start)

    def content(self, size: int) -> Content:
        """The first ``size`` bytes as the body of an answer, which keeps the file."""
        return Content(size, open=lambda: os.dup(self._file.fileno()))
