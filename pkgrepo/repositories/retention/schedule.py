"""The runs of retention by the schedules of repositories."""

from __future__ import annotations

from functools import partial
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.configuration import Retention
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.cron import parse_cron
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.jobs import Job, JobRunning

from .run import KIND, RetentionWork, retention_of

EVERY_S: Final = 60.0  # the unit of cron texts

log = Logger()


class RetentionSchedule(PeriodicTask):
    """
    Looks every minute which repositories have a run due, and begins it as a job.

    The time up to which the schedule of a repository was followed is in the catalog: a restart causes no second run,
    and a run that was due while the server was down is made up for once. A new schedule begins when it is first seen.
    """

    def __init__(self, context: MaintenanceContext, *, work: RetentionWork, jobs: Jobs, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="retention by schedule")
        self._catalog = context.catalog
        self._registry = context.registry
        self._clock = context.clock
        self._work = work
        self._jobs = jobs

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for repository in self._registry.listed():
            retention = retention_of(repository, self._registry)
            if repository.active and retention is not None and retention.enabled:
                try:
                    if await self._is_due(repository, retention):
                        await self._begin(repository, retention)
                except PkgrepoError as error:
                    log.warn("retention of {repository}: {error}", repository=repository.path, error=str(error))

    async def _is_due(self, repository: Repository, retention: Retention) -> bool:
        now_ms = self._clock.now_ms()
        last = await self._catalog.look(settings.get, _key(repository))
        if last is None:
            await self._catalog.write(settings.put, _key(repository), str(now_ms))
            return False
        return parse_cron(retention.schedule).next_after(from_ms(int(last))) <= from_ms(now_ms)

    async def _begin(self, repository: Repository, retention: Retention) -> None:
        now_ms = self._clock.now_ms()
        work = partial(self._work.run, repository, retention, SYSTEM, False)
        data = {"on": repository.path, "repository": repository.uid, "dry_run": False}
        try:
            job = await self._jobs.wait(await self._jobs.begin(KIND, repository.uid, data, work))
        except JobRunning:
            return  # it is checked again in a minute
        await self._catalog.write(settings.put, _key(repository), str(now_ms))
        _tell(repository, job)


def _tell(repository: Repository, job: Job) -> None:
    if job.state != "done":
        reason = "; ".join(job.result.get("errors", ()))
        log.warn("retention of {repository} failed: {reason}", repository=repository.path, reason=reason)
    elif job.result["needs_confirmation"]:
        log.warn(
            "retention of {repository} would remove {count} of {examined} and waits for confirmation",
            repository=repository.path,
            count=job.result["count"],
            examined=job.result["examined"],
        )
    elif job.result["removed"]:
        log.info("retention of {repository} removed {count}", repository=repository.path, count=job.result["removed"])


def _key(repository: Repository) -> str:
    return settings.retention_key(repository.uid)
