"""Keeps the caches of proxy repositories within their limits, and the catalog free of answers that nobody needs."""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import SYSTEM, Repository, RepositoryType
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.documents.kept_answers import KeptAnswers
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.upkeep.jobs import NoProgress

from .purge import DAY_MS, CachePurge

EVERY_S: Final = 3600.0
DOCUMENTS_KEPT_MS: Final = 30 * DAY_MS  # after the last confirmation; a document is fetched again in one request

log = Logger()


class CacheLimits(PeriodicTask):
    """Runs at the start and every hour; several processes may run it at the same time."""

    def __init__(
        self, context: MaintenanceContext, *, purge: CachePurge, kept: KeptAnswers, reactor: IReactorTime
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="keeping caches within their limits")
        self._registry = context.registry
        self._clock = context.clock
        self._purge = purge
        self._kept = kept

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for repository in self._registry.all():
            if repository.type is RepositoryType.PROXY and repository.active:
                try:
                    await self._limit(repository)
                except PkgrepoError:
                    log.failure("the cache of {repository} could not be limited", repository=repository.path)

    async def _limit(self, repository: Repository) -> None:
        await self._kept.forget_unused(repository, self._clock.now_ms() - DOCUMENTS_KEPT_MS)
        config = proxy_config_of(repository)
        if config.max_bytes is None and config.unused_days is None:
            return
        found = await self._purge.evict(repository, SYSTEM, NoProgress())
        if found.versions or found.documents:
            log.info(
                "evicted {versions} versions and {documents} documents of {size} bytes from {repository}",
                versions=found.versions,
                documents=found.documents,
                size=found.size + found.document_size,
                repository=repository.path,
            )
