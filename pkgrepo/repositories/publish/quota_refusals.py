"""Refusals of uploads by quotas, as events of the repository."""

from __future__ import annotations

from typing import Final

from pkgrepo.concurrency.services import spawn
from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.package_changes import ChangeListener
from pkgrepo.storage.catalog.server.quotas import record_refusal

EACH_MS: Final = 3_600_000  # between two events about refusals of a repository by one limit
MOST: Final = 1000  # limits that are remembered


class QuotaRefusals:
    """Records a refusal once in a while: clients may try again for ever."""

    def __init__(self, catalog: ICatalog, clock: Clock, on_change: ChangeListener) -> None:
        self._catalog = catalog
        self._clock = clock
        self._on_change = on_change
        self._recorded_ms: dict[tuple[int, str, str], int] = {}  # by repository, subject and what there is too much of

    def record(self, repository: Repository, error: QuotaExceeded) -> None:
        """Record a refusal soon, unless one by the same limit was recorded a short time ago."""
        key, now_ms = (repository.id, error.subject, error.what), self._clock.now_ms()
        if now_ms - self._recorded_ms.get(key, 0) < EACH_MS:
            return
        if len(self._recorded_ms) >= MOST:
            self._recorded_ms.clear()
        self._recorded_ms[key] = now_ms
        spawn(self._write(repository, error, now_ms), "an upload refused by a quota was not recorded")

    async def _write(self, repository: Repository, error: QuotaExceeded, now_ms: int) -> None:
        await self._catalog.write(record_refusal, repository.id, error, SYSTEM, now_ms)
        self._on_change(repository)
