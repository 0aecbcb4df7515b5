"""
``/versions`` of hosted repositories: a line for each change of a gem, appended to a file of this process.

A change, of this process or another, appends one line in the catalog. The next read appends the lines that are new to
the file, and their bytes to the running digests, so its cost does not depend on the length of the list. Bytes before
the end never change while the list has the same epoch, so answers that are under way are not disturbed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections import OrderedDict
from datetime import UTC, datetime
from typing import IO, Any, Final

from attrs import evolve, frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import StorageFull
from pkgrepo.http.answers import Content
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.packages import appended_lists
from pkgrepo.storage.catalog.packages.appended_lists import ListState
from pkgrepo.storage.gil import GilReleaser

from .indexing import began_ms
from .info import render_time

PAGE: Final = 2000  # lines read at a time
MOST_FILES: Final = 64  # repositories whose lists are kept


@frozen(eq=False)
class VersionsList:
    """
    The list in one state: the first ``size`` bytes of a file.

    ``md5`` and ``sha256`` are those of these bytes, as objects of ``hashlib`` that are only copied.
    """

    state: ListState | None
    size: int
    md5: Any
    sha256: Any
    file: IO[bytes]

    def content(self) -> Content:
        """The list as the body of an answer."""
        return Content(self.size, open=lambda: os.dup(self.file.fileno()))

    def read(self) -> bytes:
        """The list in memory."""
        return os.pread(self.file.fileno(), self.size, 0)


class VersionsLists:
    """The lists of all hosted repositories, one instance per process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, VersionsList] = OrderedDict()
        self._flight: SingleFlight[tuple[int, ListState | None], VersionsList] = SingleFlight()

    async def get(self, catalog: ICatalog, repository: Repository) -> VersionsList:
        """
        The present list of a repository.

        :raises StorageFull: there is no room for the file
        """
        state: ListState | None = await catalog.look(appended_lists.find_list, repository.id)
        kept = self._kept.get(repository.id)
        if kept is not None and kept.state == state:
            self._kept.move_to_end(repository.id)
            return kept
        return await self._flight.run((repository.id, state), lambda: self._update(catalog, repository))

    async def _update(self, catalog: ICatalog, repository: Repository) -> VersionsList:
        try:
            made = await catalog.scan(_extend, repository, self._kept.get(repository.id))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StorageFull("temporary files") from error
        self._kept[repository.id] = made
        self._kept.move_to_end(repository.id)
        if len(self._kept) > MOST_FILES:
            self._kept.popitem(last=False)
        return made


def _extend(reader: Reader, repository: Repository, kept: VersionsList | None) -> VersionsList:
    """
    The list in the present state.

    The file of ``kept`` is extended if it is a part of the list. Two threads may do that at a time: they write the same
    bytes to the same place.
    """
    state = appended_lists.find_list(reader, repository.id)
    if kept is None or not _continues(kept.state, state):
        kept = _begin(repository, state)
    md5, sha256, size = kept.md5.copy(), kept.sha256.copy(), kept.size
    seq, end = _next_seq(kept.state), _next_seq(state)
    gil = GilReleaser()
    while seq < end and (lines := appended_lists.lines_from(reader, repository.id, seq, PAGE)):
        data = b"".join(line + b"\n" for _, line in lines)
        _write(kept.file, data, size)
        md5.update(data)
        sha256.update(data)
        size += len(data)
        seq = lines[-1][0] + 1
        gil.release_if_due()
    return evolve(kept, state=state, size=size, md5=md5, sha256=sha256)


def _begin(repository: Repository, state: ListState | None) -> VersionsList:
    since_ms = began_ms(repository) if state is None else state.began_ms
    began = datetime.fromtimestamp(since_ms // 1000, tz=UTC)
    head = f"created_at: {render_time(began)}\n---\n".encode()
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with its last reference
    _write(file, head, 0)
    digests = hashlib.md5(head, usedforsecurity=False), hashlib.sha256(head)
    return VersionsList(None if state is None else evolve(state, next_seq=0), len(head), *digests, file)


def _continues(before: ListState | None, state: ListState | None) -> bool:
    """Whether a list in the first state is the beginning of one in the second."""
    if before is None or state is None:
        return before is state
    return (before.epoch, before.began_ms) == (state.epoch, state.began_ms) and before.next_seq <= state.next_seq


def _next_seq(state: ListState | None) -> int:
    return 0 if state is None else state.next_seq


def _write(file: IO[bytes], data: bytes, start: int) -> None:
    while data:
        written = os.pwrite(file.fileno(), data, start)
        data, start = data[written:], start + written
