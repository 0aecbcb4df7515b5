"""An uploaded file that several threads can read at the same time, at any offset."""

from __future__ import annotations

import os

from attrs import define

from pkgrepo.errors import Invalid, PkgrepoError


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


@define
class PartMissing(PkgrepoError):  # noqa: N818 - named for what is the case
    """The bytes from ``start`` to ``end`` (exclusive) of a file are not there."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"the bytes from {self.start} to {self.end} are not there"


class PartialSource(Source):
    """A file of ``size`` bytes, of which only some parts are there."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(b"", name)
        self.size = size
        self._parts: dict[int, bytes] = {}

    def add(self, start: int, data: bytes) -> None:
        """Add the bytes from ``start`` on."""
        self._parts[start] = data

    def read(self, start: int, count: int) -> bytes:
        """
        See L{Source.read}.

        :raises PartMissing: the first part that is needed and not there
        """
        end = start + count
        if not 0 <= start <= end <= self.size:
            raise self.refuse("is truncated")
        found = bytearray()
        while len(found) < count:
            at = start + len(found)
            holding = ((first, data) for first, data in self._parts.items() if first <= at < first + len(data))
            first, data = next(holding, (at, b""))
            if not data:
                raise PartMissing(at, min((each for each in self._parts if at < each < end), default=end))
            found += data[at - first : end - first]
        return bytes(found)
