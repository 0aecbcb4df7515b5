"""
``/versions`` of hosted repositories: a line for each change of a gem, appended to a file of this process.

A change, of this process or another, appends one line in the catalog. The next read appends the lines that are new to
the file, so that its cost does not depend on the length of the list.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.documents import appended_lists
from pkgrepo.storage.catalog.documents.appended_lists import ListState
from pkgrepo.storage.gil import GilReleaser

from .indexing import began_ms
from .info import render_time
from .list_files import ListFile, ListWriter

PAGE: Final = 2000  # lines read at a time
MOST_FILES: Final = 64  # repositories whose lists are kept


@frozen(eq=False)
class VersionsList:
    """The list in one state, None if it never had a line."""

    state: ListState | None
    file: ListFile


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
        made = await catalog.scan(_extend, repository, self._kept.get(repository.id))
        self._kept[repository.id] = made
        self._kept.move_to_end(repository.id)
        if len(self._kept) > MOST_FILES:
            self._kept.popitem(last=False)
        return made


def read_lines(reader: Reader, repository: Repository, seq: int = 0) -> Iterator[bytes]:
    """The lines of a repository's list from the number ``seq`` on, several at a time."""
    gil = GilReleaser()
    while lines := appended_lists.lines_from(reader, repository.id, seq, PAGE):
        yield b"".join(line + b"\n" for _, line in lines)
        seq = lines[-1][0] + 1
        gil.release_if_due()


def list_head(repository: Repository, state: ListState | None) -> bytes:
    """What stands before the lines of a repository's list in this state."""
    since_ms = began_ms(repository) if state is None else state.began_ms
    began = datetime.fromtimestamp(since_ms // 1000, tz=UTC)
    return f"created_at: {render_time(began)}\n---\n".encode()


def _extend(reader: Reader, repository: Repository, kept: VersionsList | None) -> VersionsList:
    """The list in the present state, in the file of ``kept`` if that is its beginning."""
    state = appended_lists.find_list(reader, repository.id)
    if kept is not None and _continues(kept.state, state):
        writer, seq = ListWriter.continuing(kept.file), 0 if kept.state is None else kept.state.next_seq
    else:
        writer, seq = ListWriter.new(), 0
        writer.add(list_head(repository, state))
    for data in read_lines(reader, repository, seq):
        writer.add(data)
    return VersionsList(state, writer.end())


def _continues(before: ListState | None, state: ListState | None) -> bool:
    """Whether a list in the first state is the beginning of one in the second."""
    if before is None or state is None:
        return before is state
    return (before.epoch, before.began_ms) == (state.epoch, state.began_ms) and before.next_seq <= state.next_seq
