"""Leases, notices and files that several processes share, in memory, for tests of what these make of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pkgrepo.errors import BlobMissing
from pkgrepo.proxy.transfers.notices import Growing, Verified

PLACE = (7, "a/b.tgz")
LEASE = "file/7/a/b.tgz"


class Leases:
    """The leases of one process, of those in ``taken``, which has their holders by name."""

    def __init__(self, taken: dict[str, Leases]) -> None:
        self.taken = taken

    async def acquire(self, name: str) -> bool:
        if name in self.taken:
            return False
        self.taken[name] = self
        return True

    def release(self, name: str) -> None:
        if self.taken.get(name) is self:  # else it was taken away, as from a process that was killed
            del self.taken[name]


class Bus:
    """Carries notices between processes, at once, in the order of sending."""

    def __init__(self) -> None:
        self._receivers: dict[Any, Callable[[bytes], None]] = {}

    def join(self) -> Line:
        line = Line(self)
        self._receivers[line] = lambda _: None
        return line

    def subscribe(self, line: Line, receive: Callable[[bytes], None]) -> None:
        self._receivers[line] = receive

    def cut(self, line: Line) -> None:
        """Neither pass on what this process sends nor send it anything: it was killed."""
        del self._receivers[line]

    def pass_on(self, sender: Line, data: bytes) -> None:
        if sender in self._receivers:
            for line, receive in list(self._receivers.items()):
                if line is not sender:
                    receive(data)


class Line:
    """Where one process sends its notices; all others can open its files."""

    has_near = True

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def send(self, data: bytes) -> None:
        self._bus.pass_on(self, data)

    def send_near(self, data: bytes) -> None:
        self.send(data)


class Files:
    """Uploads that other processes can open, by name; see L{pkgrepo.interfaces.IGrowingFiles}."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, content: bytes) -> None:
        (self._folder / name).write_bytes(content)

    def open_growing(self, upload_id: str) -> int:
        try:
            return os.open(self._folder / upload_id, os.O_RDONLY)
        except OSError:
            raise BlobMissing(upload_id) from None


def growing(readable: int = 3, upload: str = "one", size: int = 5) -> Growing:
    return Growing(PLACE, upload, readable, size, '"e"', True, {"etag": '"e"'}, {})


def verified(upload: str = "one") -> Verified:
    return Verified(PLACE, upload, "ab" * 32, 5, "ab/cd", {}, {})
