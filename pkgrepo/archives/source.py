"""An uploaded file that several threads can read at the same time, at any offset."""

from __future__ import annotations

import os

from pkgrepo.errors import Invalid


class Source:
    """
    The content of an uploaded file: a file descriptor, which the caller closes, or bytes in memory.

    Reads do not change the file position of the descriptor. ``name`` is the file's name in error messages.
    """

    def __init__(self, content: int | bytes, name: str) -> None:
        self.name = name
        self.size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
        self._content = content

    def read(self, start: int, count: int) -> bytes:
        """
        Exactly ``count`` bytes from ``start``.

        :raises Invalid: the file ends before
        """
        if isinstance(self._content, bytes):
            if not 0 <= start <= start + count <= self.size:
                raise self.refuse("is truncated")
            return self._content[start : start + count]
        parts: list[bytes] = []
        missing = count
        while missing > 0:
            part = os.pread(self._content, missing, start)
            if not part:
                raise self.refuse("is truncated")
            parts.append(part)
            start += len(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def refuse(self, why: str) -> Invalid:
        """The error that refuses this file. Its message is the name of the file followed by ``why``."""
        return Invalid(f"{self.name} {why}", "content")
