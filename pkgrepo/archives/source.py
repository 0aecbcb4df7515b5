"""An uploaded file, which several threads can read at any offset at once."""

from __future__ import annotations

import os

from pkgrepo.errors import Invalid


class Source:
    """
    The bytes of a file descriptor, which the caller closes, or in memory.

    Reads do not move the descriptor's position. ``name`` stands in messages.
    """

    def __init__(self, content: int | bytes, name: str) -> None:
        self.name = name
        self.size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
        self._content = content

    def read(self, start: int, count: int) -> bytes:
        """
        Exactly ``count`` bytes from ``start``.

        :raises Invalid: the file ends earlier
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
        """An error about this file; ``why`` follows its name in the message."""
        return Invalid(f"{self.name} {why}", "content")
