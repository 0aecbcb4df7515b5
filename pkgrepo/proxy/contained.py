"""Files that are read out of others: of a file of an upstream only those parts are asked for in which they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from attrs import define, frozen
from zope.interface import implementer

from pkgrepo.archives.source import PartialSource, PartMissing, Source
from pkgrepo.errors import Invalid, NotFound, PkgrepoError
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.proxy.transfers.answers import part_of
from pkgrepo.storage.pools import Pool

FIRST: Final = (
    80 * 1024
)  # bytes of the end of a file; readers of zip archives look at its last 64 KiB for the directory
AHEAD: Final = 32 * 1024  # bytes at least of each further part
MOST_PARTS: Final = 8
MOST_BYTES: Final = 4 * 1024 * 1024  # in memory; the directory of a wheel of 13,000 files has 1.5 MB

Open = Callable[[Mapping[str, str]], AbstractAsyncContextManager[IUpstreamResponse]]


@define
class WholeNeeded(PkgrepoError):  # noqa: N818 - named for what is the case
    """A file cannot be read out of parts of another: the upstream sends none, or they are too large or damaged."""

    name: str

    def __str__(self) -> str:
        return f"parts of {self.name} are not enough"


@implementer(IUpstreamResponse)
class ReadOut:
    """A file that was read out of another at ``url``, as if the upstream had sent it."""

    status = 200
    framed = True

    def __init__(self, url: str, data: bytes) -> None:
        self.url = url
        self.headers: Mapping[str, str] = {}
        self.length = len(data)
        self._data = data

    async def chunks(self) -> AsyncIterator[bytes]:
        """See L{IUpstreamResponse.chunks}."""
        yield self._data

    async def read(self) -> bytes:
        """See L{IUpstreamResponse.read}."""
        return self._data


@frozen
class _Part:
    start: int
    size: int  # of the whole
    etag: str | None
    data: bytes


async def read_out(open_: Open, name: str, size: int | None, read: Callable[[Source], bytes], cpu: Pool) -> bytes:
    """
    The result of ``read``, which is called on a thread with the parts of a file, and with more if some are missing.

    ``open_`` asks for the file with header fields. ``name`` is that of the file for errors, ``size`` its size in bytes
    if that is known: not all servers know ranges that are counted from the end.

    :raises NotFound: the upstream does not have it; :raises UpstreamFailed: it cannot be asked
    :raises WholeNeeded: see there
    """
    first = await _ask(open_, name, f"-{FIRST}" if size is None else f"{max(size - FIRST, 0)}-{size - 1}")
    parts = PartialSource(first.size, name)
    parts.add(first.start, first.data)
    left = MOST_BYTES - len(first.data)
    for _ in range(MOST_PARTS):
        try:
            return await cpu(read, parts)
        except PartMissing as missing:
            start, end = missing.start, max(missing.end, min(missing.start + AHEAD, first.size))
        except Invalid:
            break  # perhaps on its way: the whole is verified
        left -= end - start
        if left < 0:
            break
        part = await _ask(open_, name, f"{start}-{end - 1}")
        if (part.start, part.size, part.etag) != (start, first.size, first.etag):
            break
        parts.add(start, part.data)
    raise WholeNeeded(name)


async def _ask(open_: Open, name: str, wanted: str) -> _Part:
    async with open_({"Range": f"bytes={wanted}"}) as response:
        if response.status in (404, 410):
            raise NotFound("file", name)
        found = part_of(response)
        if found is None or found[1] - found[0] > MOST_BYTES:
            raise WholeNeeded(name)
        start, end, size = found
        data: Any = await response.read()
        if len(data) != end - start:
            raise WholeNeeded(name)
        return _Part(start, size, response.headers.get("ETag"), data)
