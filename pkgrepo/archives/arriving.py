"""The entries of a tar archive, plain or in gzip, in their order while the archive arrives: nothing is kept of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from pkgrepo.archives.source import LIMITS, PartMissing, Source
from pkgrepo.archives.streams import Gunzip, PlainStream
from pkgrepo.archives.tar_archive import BLOCK, EXTENDED_SIZE, Member, Tar, extension_size

MOST_EXTENSIONS: Final = 4  # extended headers before one entry; a global one, and those of the name and the link
_ENDLESS: Final = 1 << 62  # bytes; the size of a file of which more may come


class ArrivingTar:
    """
    Iterates over the members of an archive once, and over the bytes of the current one.

    ``chunks`` are the bytes of the archive, ``name`` is that of the file in error messages. The rules for headers,
    names and links are those of L{Tar}.
    """

    def __init__(self, chunks: AsyncIterator[bytes], name: str) -> None:
        self._source = Source(b"", name)
        self._chunks = _unpacked(chunks, name)
        self._chunk = memoryview(b"")
        self._left = 0  # unread bytes of the current member
        self._padding = 0

    async def members(self) -> AsyncIterator[Member]:
        """
        The members in their order.

        :raises Invalid: the archive is damaged, exceeds a limit, or has an entry that is no file, folder or link
        """
        for _ in range(LIMITS.free_entries):
            async for _piece in self.content():
                pass
            await self._read(self._padding)
            headers = await self._headers()
            if headers is None:
                return
            source = Source(headers, self._source.name)
            member = next(iter(Tar(source, PlainStream(source))))
            self._left, self._padding = member.size, -member.size % BLOCK
            yield member
        raise self._source.refuse(f"has more than {LIMITS.free_entries} entries")

    async def content(self) -> AsyncIterator[bytes]:
        """The unread bytes of the current member in pieces. :raises Invalid: the archive is truncated"""
        while self._left:
            piece = await self._some(self._left)
            self._left -= len(piece)
            yield bytes(piece)

    async def read(self, limit: int) -> bytes:
        """The current member in memory. :raises Invalid: it is longer than ``limit`` bytes"""
        if self._left > limit:
            raise self._source.refuse(f"has an entry of more than {limit} bytes where less is allowed")
        return b"".join([piece async for piece in self.content()])

    async def _headers(self) -> bytes | None:
        """The header of the next member after those that extend it; None at the end of the archive."""
        headers: list[bytes] = []
        for _ in range(MOST_EXTENSIONS + 1):
            header = await self._read(BLOCK)
            if not any(header):
                await self._check_end()
                return None
            headers.append(header)
            extension = extension_size(header)
            if extension is None:
                return b"".join(headers)
            if extension > EXTENDED_SIZE:
                raise self._source.refuse(f"has an extended header of more than {EXTENDED_SIZE} bytes")
            headers.append(await self._read(extension + -extension % BLOCK))
        raise self._source.refuse(f"has more than {MOST_EXTENSIONS} extended headers before an entry")

    async def _check_end(self) -> None:
        # Some programs stop at the first empty block, others read on, so data after it would have two meanings.
        rest = self._chunk
        while True:
            if rest.tobytes().strip(b"\x00"):
                raise self._source.refuse("has data after the end of its tar archive")
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return
            rest = memoryview(chunk)

    async def _read(self, count: int) -> bytes:
        parts = []
        while count:
            piece = await self._some(count)
            parts.append(bytes(piece))
            count -= len(piece)
        return b"".join(parts)

    async def _some(self, most: int) -> memoryview:
        """At least one byte, at most ``most``."""
        while not self._chunk:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                raise self._source.refuse("is truncated, or not a tar archive")
            self._chunk = memoryview(chunk)
        most = min(most, LIMITS.piece)
        piece, self._chunk = self._chunk[:most], self._chunk[most:]
        return piece


class _Growing(Source):
    """A file that arrives: each byte is read once, in order."""

    def __init__(self, name: str) -> None:
        super().__init__(b"", name)
        self.size = _ENDLESS
        self.arrived = 0
        self._waiting = b""

    def add(self, chunk: bytes) -> None:
        self._waiting += chunk
        self.arrived += len(chunk)

    def end(self) -> None:
        self.size = self.arrived

    def read(self, start: int, count: int) -> bytes:
        """At most ``count`` bytes; none at the end. :raises PartMissing: they have not arrived"""
        if not self._waiting and self.size == _ENDLESS:
            raise PartMissing(start, start + count)
        data, self._waiting = self._waiting[:count], self._waiting[count:]
        return data


async def _unpacked(chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    """The bytes of the tar archive. :raises Invalid: a gzip archive is damaged, or far larger than it is packed"""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head) >= 2:
            break
    if head.startswith(b"\x1f\x8b"):
        chunks, head = _gunzipped(head, chunks, name), b""
    if head:
        yield head
    async for chunk in chunks:
        if chunk:
            yield chunk


async def _gunzipped(head: bytes, rest: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    source = _Growing(name)
    source.add(head)
    stream, unpacked = Gunzip(source), 0
    while True:
        try:
            piece = stream.read_some()
        except PartMissing:
            chunk = await anext(rest, b"")
            if chunk:
                source.add(chunk)
            else:
                source.end()
            continue
        if not piece:
            return
        unpacked += len(piece)
        if unpacked > max(LIMITS.free_size, LIMITS.ratio * source.arrived):
            raise source.refuse(f"unpacks to more than {unpacked} bytes, far more than it is packed")
        yield piece
