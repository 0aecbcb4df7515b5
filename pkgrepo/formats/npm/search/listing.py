"""
The list of all packages, ``/-/all``, which old clients request: one member per package, in a temporary file.

The file has no name in its folder. It is cached until the repository changes, and shared by all callers who may read
the whole repository. For a caller who may read only some packages a separate file is written.
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
from pkgrepo.formats.npm.search.rows import render_member
from pkgrepo.http.answers import Content
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.pools import GilReleaser

from .rows import LISTED, ROW, read_row

PAGE: Final = 200  # packages in one query


@frozen
class _File:
    seq: int  # of the last event that is included
    file: IO[bytes]
    size: int

    def content(self) -> Content:
        """A response body. The file exists as long as a body or the cache refers to it."""
        return Content(self.size, open=lambda: os.dup(self.file.fileno()))


class Listing:
    """The list of all packages of one repository."""

    def __init__(self, catalog: ICatalog, repository: Repository) -> None:
        self._catalog = catalog
        self._repository = repository
        self._cached: _File | None = None
        self._flight: SingleFlight[int, _File] = SingleFlight()

    async def whole(self, now_ms: int) -> Content:
        """The list of all packages as of now. :raises StorageFull: the disk has no room for the file"""
        seq = await self._catalog.look(events.last_seq_of_repository, self._repository.id)
        cached = self._cached
        if cached is None or cached.seq < seq:
            cached = await self._flight.run(seq, lambda: self._build(now_ms, None))
            if self._cached is None or self._cached.seq < cached.seq:
                self._cached = cached
        return cached.content()

    async def of(self, keys: Container[str], now_ms: int) -> Content:
        """The list of the packages with these keys."""
        return (await self._build(now_ms, keys)).content()

    async def _build(self, now_ms: int, keys: Container[str] | None) -> _File:
        try:
            return await self._catalog.scan(_write, self._repository.id, now_ms, keys)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull("temporary files") from error


def _write(reader: Reader, repository_id: int, now_ms: int, keys: Container[str] | None) -> _File:
    seq = events.last_seq_of_repository(reader, repository_id)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with its last reference
    gil, after = GilReleaser(), ""
    file.write(b'{"_updated":%d' % now_ms)
    while page := index_documents.fragments_after(reader, repository_id, LISTED, after, PAGE):
        for key, body in page:
            listed = body if body is not None else _make_from_row(reader, repository_id, key)
            if listed is not None and (keys is None or key in keys):
                file.write(b",\n" + listed)
        after = page[-1][0]
        gil.release_if_due()
    file.write(b"}")
    file.flush()
    return _File(seq, file, file.tell())


def _make_from_row(reader: Reader, repository_id: int, key: str) -> bytes | None:
    """The member of a package that was indexed by a version of this program that wrote no members."""
    body = index_documents.find_single_fragment(reader, repository_id, key, ROW)
    return None if body is None else render_member(read_row(body))
