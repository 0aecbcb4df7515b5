"""
The old list of everything, ``/-/all``: joined from a piece for each package, in a file that is sent from the disk.

The file has no name, and is kept until the repository changes, so that everybody who asks shares it; who may read some
packages only gets one of their own.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Container
from typing import IO, Final

from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import StorageFull
from pkgrepo.http.answers import Content
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.packages import fragments as documents
from pkgrepo.storage.gil import GilReleaser

from .rows import LISTED, ROW, make_listed, read_row

PAGE: Final = 200  # packages that are read at once


@frozen
class _File:
    seq: int  # of the last event that it tells of
    file: IO[bytes]
    size: int

    def content(self) -> Content:
        """A body to be sent; the file stays as long as this."""
        return Content(self.size, open=lambda: os.dup(self.file.fileno()))


class Listing:
    """The list of one repository."""

    def __init__(self, catalog: ICatalog, repository: Repository) -> None:
        self._catalog = catalog
        self._repository = repository
        self._kept: _File | None = None
        self._flight: SingleFlight[int, _File] = SingleFlight()

    async def whole(self, now_ms: int) -> Content:
        """The list of all packages, as of now. :raises StorageFull: there is no room for it"""
        seq = self._catalog.look_inline(events.last_seq_of, self._repository.id)
        kept = self._kept
        if kept is None or kept.seq < seq:
            kept = await self._flight.run(seq, lambda: self._build(now_ms, None))
            if self._kept is None or self._kept.seq < kept.seq:
                self._kept = kept
        return kept.content()

    async def of(self, keys: Container[str], now_ms: int) -> Content:
        """The list of some packages."""
        return (await self._build(now_ms, keys)).content()

    async def _build(self, now_ms: int, keys: Container[str] | None) -> _File:
        try:
            return await self._catalog.scan(_write, self._repository.id, now_ms, keys)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull("temporary files") from error


def _write(reader: Reader, repository_id: int, now_ms: int, keys: Container[str] | None) -> _File:
    seq = events.last_seq_of(reader, repository_id)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when nobody sends it any more
    gil, after = GilReleaser(), ""
    file.write(b'{"_updated":%d' % now_ms)
    while page := documents.parts_after(reader, repository_id, LISTED, after, PAGE):
        for key, body in page:
            listed = body if body is not None else _made(reader, repository_id, key)
            if listed is not None and (keys is None or key in keys):
                file.write(b",\n" + listed)
        after = page[-1][0]
        gil.release_if_due()
    file.write(b"}")
    file.flush()
    return _File(seq, file, file.tell())


def _made(reader: Reader, repository_id: int, key: str) -> bytes | None:
    """The piece of a package that was written before there were such."""
    body = documents.find_part(reader, repository_id, key, ROW)
    return None if body is None else make_listed(read_row(body))
