"""Takes over deployments whose process was stopped, and goes on with them."""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.formats.maven.deploy.running import Running
from pkgrepo.gateway.services import Services
from pkgrepo.model.deployments import Deployment
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.storage.catalog.packages.interrupted_deployments import list_interrupted, take_over

from .bundles import Bundles

EVERY_S: Final = 1.0  # one look-up in an index that is nearly always empty
AT_A_TIME: Final = 100  # rows that are looked at


class ResumeDeployments(PeriodicTask):
    """Looks for such deployments at start and then every ``EVERY_S`` seconds; ``format_name`` is that of Maven."""

    def __init__(
        self, services: Services, format_name: str, indexer: Indexer, running: Running, reactor: IReactorTime
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="going on with deployments")
        self._services = services
        self._format_name = format_name
        self._indexer = indexer
        self._works = running

    async def run_once(self) -> None:
        """Take over deployments until one of them waits for its turn; other processes take over the others."""
        services = self._services
        found: list[Deployment] = await services.catalog.look(list_interrupted, services.clock.now_ms(), AT_A_TIME)
        if found:
            await services.registry.refresh()
        for each in found:
            if self._works.turns.waiting:
                return
            repository = services.registry.find_id(each.repository_id)
            if repository is None or repository.format != self._format_name:
                continue
            taken = await services.catalog.write(take_over, each.id, services.clock.now_ms())
            if taken is not None:
                Bundles(services, repository, self._indexer, self._works).resume(taken)
