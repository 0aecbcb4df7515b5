"""
The search indexes of all repositories: made when first asked for, and kept up to date by the events of the catalog.

==========  ======================================================  ===============================================
state       what is true                                            left by
==========  ======================================================  ===============================================
none        nobody has searched, or others took the room            a search: it waits while all packages are read
current     no event came after the one that was read last          an event, of this process or another
behind      events came                                             a search: it waits while their packages are read
old         built more than REBUILD_S ago                           a search: it does not wait; a new one is built,
                                                                    with the downloads as they are then
==========  ======================================================  ===============================================

Whoever searches finds what was committed before: a publish that was acknowledged is there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages import downloads, events
from pkgrepo.storage.catalog.packages import fragments as documents
from pkgrepo.storage.gil import GilReleaser

from .index import Entry, SearchIndex

log = Logger()

MOST_BYTES: Final = 512 * 1024 * 1024  # of all indexes; the ones that were not used for longest go
MOST_PACKAGES: Final = 1_000_000  # of one repository; what is beyond is not found
REBUILD_S: Final = 600
PAGE: Final = 500  # packages that are read at once
MOST_EVENTS: Final = 5000  # that are followed at once

ReadEntry = Callable[[str, bytes, int], Entry]  # from a package's key, its part of this kind, and its downloads


@define(eq=False)
class _Kept:
    index: SearchIndex
    seq: int  # of the last event that it knows of
    generation: int  # of the catalog, at which there was no later one
    built_ms: int


class SearchIndexCache:
    """
    Keeps the index of each repository in which somebody searches.

    The format chooses the kind of fragment from which its entries are read, one for each package. ``semaphore`` lets
    one query run at a time: a query competes for the GIL while it scans the texts, so publishes and logins compete with
    one query at most.
    """

    def __init__(self, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        self.semaphore = FairSemaphore(1, reactor)
        self._catalog = catalog
        self._clock = clock
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._flight: SingleFlight[tuple[int, str], None] = SingleFlight()

    async def get(self, repository: Repository, kind: str, read: ReadEntry) -> SearchIndex:
        """The index of a repository, as of now."""
        key = repository.id
        generation = self._catalog.generation()
        found = self._kept.get(key)
        if found is None or found.generation != generation:
            # As of now: others may go on publishing without end.
            found = await self._of(key, await self._catalog.look(events.last_seq_of, key), kind, read)
            found.generation = generation
        if key in self._kept:
            self._kept.move_to_end(key)
        if self._clock.now_ms() - found.built_ms > REBUILD_S * 1000:
            found.built_ms = self._clock.now_ms()  # others do not begin as well
            rebuilt = self._flight.run((key, "build"), lambda: self._build(key, kind, read))
            Deferred.fromCoroutine(rebuilt).addErrback(_log_failure, repository.path)
        return found.index

    async def _of(self, key: int, seq: int, kind: str, read: ReadEntry) -> _Kept:
        """What is kept of a repository once it knows of this event."""
        while True:
            found = self._kept.get(key)
            if found is None:
                await self._flight.run((key, "build"), lambda: self._build(key, kind, read))
            elif found.seq < seq:
                await self._flight.run((key, "follow"), lambda: self._follow(key, kind, read))
            else:
                return found

    async def _build(self, repository_id: int, kind: str, read: ReadEntry) -> None:
        index, seq = await self._catalog.scan(_read_all, repository_id, kind, read)
        self._kept[repository_id] = _Kept(index, seq, -1, self._clock.now_ms())
        while len(self._kept) > 1 and sum(each.index.size for each in self._kept.values()) > MOST_BYTES:
            self._kept.popitem(last=False)

    async def _follow(self, repository_id: int, kind: str, read: ReadEntry) -> None:
        kept = self._kept.get(repository_id)
        if kept is not None:
            kept.seq = await self._catalog.scan(_read_changed, repository_id, kept.index, kept.seq, kind, read)


def _read_all(reader: Reader, repository_id: int, kind: str, read: ReadEntry) -> tuple[SearchIndex, int]:
    index, gil, after = SearchIndex(), GilReleaser(), ""
    seq = events.last_seq_of(reader, repository_id)
    counts = dict(downloads.downloads_by_package(reader, repository_id))
    entries: dict[str, Entry] = {}
    while len(entries) < MOST_PACKAGES:
        page = documents.parts_after(reader, repository_id, kind, after, PAGE)
        if not page:
            break
        for key, body in page:
            if body is not None:
                entries[key] = read(key, body, counts.get(key, 0))
            gil.release_if_due()
        after = page[-1][0]
    for key in counts:  # the most downloaded first
        if key in entries:
            index.put(entries.pop(key))
            gil.release_if_due()
    for entry in entries.values():
        index.put(entry)
        gil.release_if_due()
    return index, seq


def _read_changed(reader: Reader, repository_id: int, index: SearchIndex, seq: int, kind: str, read: ReadEntry) -> int:
    """Bring an index up to date with the events after ``seq``; the last one that was read."""
    gil = GilReleaser()
    changed, seq = events.changed_packages(reader, repository_id, seq, MOST_EVENTS)
    for key in changed:
        body = documents.find_part(reader, repository_id, key, kind)
        if body is None:
            index.remove(key)
        elif key in index or len(index) < MOST_PACKAGES:
            index.put(read(key, body, 0))
        gil.release_if_due()
    return seq


def _log_failure(failure: object, repository: str) -> None:
    log.error(
        "the search index of {repository} could not be built anew: {failure}", repository=repository, failure=failure
    )
