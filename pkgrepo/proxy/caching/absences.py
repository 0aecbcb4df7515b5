"""
What no upstream has, as far as that is not in the catalog: rows in memory, of documents, files and images alike.

They are bounded, since any client can ask for any name. The other processes are told of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from attrs import define, field

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import NotFound
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.states import absence, fresh_until_ms, is_ahead, is_current
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

MEMORY: Final = 24 * 1024 * 1024  # bytes; some 20,000 absences
ROW: Final = 600  # bytes, without its key and steps
STEP: Final = 360


@define(eq=False)
class NegativeCache:
    """
    Remembers keys for the repository's ``negative_ttl``, with the steps by which upstreams were asked.

    ``on_note`` is called with the id of a repository and a row, for the ``add`` of others.
    """

    _clock: Clock
    _on_note: Callable[[int, UpstreamDocument], None] = lambda *_: None
    _absences: Lru[tuple[int, str], UpstreamDocument] = field(factory=lambda: Lru(MEMORY), init=False)
    _forgotten_ms: dict[int, int] = field(factory=dict, init=False)  # when, by the ids of repositories

    def find(self, repository_id: int, key: str) -> UpstreamDocument | None:
        """
        The row that tells that no upstream had it, also a long while ago; None if that is not known.

        What is of a later time than now is forgotten: it would hide all that is found from now on.
        """
        found = self._absences.get((repository_id, key))
        if found is not None and is_ahead(found, self._clock.now_ms()):
            self._absences.pop((repository_id, key))
            return None
        return found

    def check(self, repository: Repository, key: str, trace: Trace | None = None, *, what: str = "file") -> None:
        """:raises NotFound: no upstream had it a short while ago; ``what`` it is"""
        row = self.find(repository.id, key)
        until_ms = 0 if row is None or not is_current(repository, row) else fresh_until_ms(repository, row)
        if row is not None and until_ms > self._clock.now_ms():
            if trace is not None:
                trace.recall(repository.path, row.trace)
                trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=until_ms)
            raise NotFound(what, key)

    def note(self, repository: Repository, key: str, trace: Trace) -> None:
        """Remember that no upstream has it; ``trace`` has the steps by which they were asked, and no others."""
        self.add_everywhere(repository, absence(repository, key, self._clock.now_ms(), trace))

    def add_everywhere(self, repository: Repository, row: UpstreamDocument) -> None:
        """Remember it in all processes."""
        self.add(repository.id, row)
        self._on_note(repository.id, row)

    def add(self, repository_id: int, row: UpstreamDocument) -> None:
        """Remember it in this process, unless something later is known, or it was asked before ``forget``."""
        known = self.find(repository_id, row.key)
        forgotten_ms = min(self._forgotten_ms.get(repository_id, 0), self._clock.now_ms())
        since_ms = forgotten_ms if known is None else known.checked_ms
        if row.checked_ms >= since_ms:
            self._absences.put((repository_id, row.key), row, ROW + sys.getsizeof(row.key) + STEP * len(row.trace))

    def drop(self, repository_id: int, keys: Sequence[str]) -> None:
        """Forget some keys."""
        for key in keys:
            self._absences.pop((repository_id, key))

    def forget(self, repository: Repository) -> None:
        """Forget all of a repository: upstreams are asked again."""
        self._forgotten_ms[repository.id] = self._clock.now_ms()
        for place in self._absences:
            if place[0] == repository.id:
                self._absences.pop(place)
