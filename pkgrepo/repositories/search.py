"""
A cache of the search indexes of all repositories, each updated from the events of the catalog.

==========  ======================================================  ===============================================
state       meaning                                                 next state by
==========  ======================================================  ===============================================
missing     not searched yet, or evicted                            a search: it waits while all packages are read
current     no event after the last one that was read               an event, of this process or another
behind      there are newer events                                  a search: it waits while their packages are read
old         built more than REBUILD_S ago                           a search: it does not wait; a new index is built
                                                                    with the present download numbers
==========  ======================================================  ===============================================

A search finds everything that was committed before it, in any process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from attrs import define, frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.services import spawn
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.search_index import Entry, SearchIndex
from pkgrepo.storage.catalog import index_documents, usage_counts
from pkgrepo.storage.catalog.packages import events

REBUILD_S: Final = 600

ReadEntry = Callable[[str, bytes, int], Entry]  # from a package's key, its fragment, and its number of downloads


@frozen
class SearchLimits:
    """What the indexes hold, and how they are read."""

    size: int = 512 * 1024 * 1024  # bytes of all indexes; the least recently used ones are evicted
    packages: int = 1_000_000  # of one repository; further ones are not found
    page: int = 500  # packages read by one query
    events: int = 5000  # read by one update


LIMITS: Final = SearchLimits()


@define(eq=False)
class _CachedIndex:
    index: SearchIndex
    seq: int  # of the last event that was read
    generation: int  # of the catalog at which there was no later event
    built_ms: int


class SearchIndexCache:
    """
    The indexes of the repositories that are searched.

    The format chooses the kind of fragment from which its entries are read, one for each package. ``semaphore`` lets
    one query run at a time: a query competes for the GIL while it scans the texts, so publishes and logins compete with
    one query at most.
    """

    def __init__(self, catalog: ICatalog, clock: Clock, reactor: IReactorTime, limits: SearchLimits = LIMITS) -> None:
        self.semaphore = FairSemaphore(1, reactor)
        self._catalog = catalog
        self._clock = clock
        self._limits = limits
        self._cached: OrderedDict[int, _CachedIndex] = OrderedDict()
        self._flight: SingleFlight[tuple[int, str], None] = SingleFlight()

    async def get(self, repository: Repository, kind: str, read: ReadEntry) -> SearchIndex:
        """Return the up-to-date index of a repository."""
        key = repository.id
        generation = self._catalog.generation()
        found = self._cached.get(key)
        if found is None or found.generation != generation:
            # Up to the event that is the last one now: others may publish all the time.
            found = await self._up_to_date(
                key, await self._catalog.look(events.last_seq_of_repository, key), kind, read
            )
            found.generation = generation
        if key in self._cached:
            self._cached.move_to_end(key)
        if self._clock.now_ms() - found.built_ms > REBUILD_S * 1000:
            found.built_ms = self._clock.now_ms()  # other searches start no rebuild
            rebuilt = self._flight.run((key, "build"), lambda: self._build(key, kind, read))
            failed = "the search index of {repository} could not be built anew"
            spawn(rebuilt, failed, repository=repository.path)
        return found.index

    async def _up_to_date(self, key: int, seq: int, kind: str, read: ReadEntry) -> _CachedIndex:
        """Return the index of a repository when it includes the event ``seq``."""
        while True:
            found = self._cached.get(key)
            if found is None:
                await self._flight.run((key, "build"), lambda: self._build(key, kind, read))
            elif found.seq < seq:
                await self._flight.run((key, "update"), lambda: self._update(key, kind, read))
            else:
                return found

    async def _build(self, repository_id: int, kind: str, read: ReadEntry) -> None:
        index, seq = await self._catalog.scan(_read_all, repository_id, kind, read, self._limits)
        self._cached[repository_id] = _CachedIndex(index, seq, -1, self._clock.now_ms())
        while len(self._cached) > 1 and sum(each.index.size for each in self._cached.values()) > self._limits.size:
            self._cached.popitem(last=False)

    async def _update(self, repository_id: int, kind: str, read: ReadEntry) -> None:
        cached = self._cached.get(repository_id)
        if cached is not None:
            cached.seq = await self._catalog.scan(
                _read_changed, repository_id, cached.index, cached.seq, kind, read, self._limits
            )


def _read_all(
    reader: Reader, repository_id: int, kind: str, read: ReadEntry, limits: SearchLimits
) -> tuple[SearchIndex, int]:
    index, gil, after = SearchIndex(), GilReleaser(), ""
    seq = events.last_seq_of_repository(reader, repository_id)
    counts = dict(usage_counts.downloads_by_package(reader, repository_id))
    entries: dict[str, Entry] = {}
    while len(entries) < limits.packages:
        page = index_documents.fragments_after(reader, repository_id, kind, after, limits.page)
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


def _read_changed(
    reader: Reader, repository_id: int, index: SearchIndex, seq: int, kind: str, read: ReadEntry, limits: SearchLimits
) -> int:
    """Update an index with the events after ``seq``. Returns the last event that was read."""
    gil = GilReleaser()
    changed, seq = events.changed_packages(reader, repository_id, seq, limits.events)
    for key in changed:
        body = index_documents.find_single_fragment(reader, repository_id, key, kind)
        if body is None:
            index.remove(key)
        elif key in index or len(index) < limits.packages:
            index.put(read(key, body, 0))
        gil.release_if_due()
    return seq
