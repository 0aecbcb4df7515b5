"""An uploaded file, read at any place by several threads at once."""

from __future__ import annotations

import os

from pkgrepo.errors import Invalid


class Source:
    """
    The bytes behind a file descriptor, which stays the caller's.

    Reading does not move the descriptor's own position. ``name`` is for sentences.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor

    def read(self, start: int, count: int) -> bytes:
        """
        Exactly ``count`` bytes from ``start``.

        :raises Invalid: the file ends before
        """
        parts: list[bytes] = []
        missing = count
        while missing > 0:
            part = os.pread(self._descriptor, missing, start)
            if not part:
                raise Invalid(f"{self.name} is truncated", "content")
            parts.append(part)
            start += len(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def refuse(self, why: str) -> Invalid:
        """An error about this file; ``why`` goes on after its name."""
        return Invalid(f"{self.name} {why}", "content")
