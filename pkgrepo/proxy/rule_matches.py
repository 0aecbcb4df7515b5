"""Counts how often rules match what clients ask for, and notes what they hold in quarantine."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import FLUSH_S
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.server.policy import Counted, Held, add_counts, note_quarantined
from pkgrepo.storage.catalog.usage_counts import DAY_MS

MOST_HELD = 1000  # versions that wait for being noted


class RuleMatches(PeriodicTask):
    """Collects matches in memory and writes them at times."""

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        failed = "the matches of rules were not recorded"
        super().__init__(self.flush, reactor, every_s=FLUSH_S, what="matches of rules", failed=failed, last=self.flush)
        self._catalog = catalog
        self._clock = clock
        self._counts: dict[Counted, int] = {}
        self._held: dict[tuple[int, str, str], Held] = {}

    def add(self, repository: Repository, package: str, verdict: Verdict) -> None:
        """Count the rules of a verdict on something of a member, and note what waits for an admin."""
        day = self._clock.now_ms() // DAY_MS
        for each in (*verdict.warned, *filter(None, (verdict.by,))):
            place = (each.owner or repository.path, each.rule.name, repository.id, day)
            self._counts[place] = self._counts.get(place, 0) + 1
        if verdict.waits:
            self.hold(repository, package, verdict)

    def hold(self, repository: Repository, package: str, verdict: Verdict) -> None:
        """Note a version that waits for an admin: of what is derived from another one, that."""
        repository, package = verdict.of or (repository, package)
        place = (repository.id, package, verdict.version)
        if verdict.by is not None and verdict.version and len(self._held) < MOST_HELD:
            self._held.setdefault(place, (*place, verdict.by.rule.name, verdict.why))

    async def flush(self) -> None:
        """Write what was collected; it is kept for the next time while the catalog cannot be written."""
        counts, self._counts = self._counts, {}
        held, self._held = self._held, {}
        try:
            if counts:
                await self._catalog.write(add_counts, counts)
                counts = {}
            if held:
                await self._catalog.write(note_quarantined, list(held.values()), self._clock.now_ms())
        except (StorageFull, StorageFailed):  # which the catalog has logged
            for place, count in counts.items():
                self._counts[place] = self._counts.get(place, 0) + count
            self._held = {**held, **self._held}
