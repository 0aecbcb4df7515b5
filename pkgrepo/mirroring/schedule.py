"""The mirrors by the patterns of proxies."""

from __future__ import annotations

from typing import Final

import msgspec
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError
from pkgrepo.mirroring.mirrors import Mirrors
from pkgrepo.mirroring.patterns import patterns_of
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.proxy.schema import MirrorPattern
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.jobs import JobRunning
from pkgrepo.untrusted.text import seconds_of

EVERY_S: Final = 60.0  # the least time of a pattern

log = Logger()


class MirrorSchedule(PeriodicTask):
    """
    Looks every minute which patterns are due, and begins a job for those of a repository.

    When each was followed last is in the catalog: a restart causes no second run, and one that was due while the server
    was down is made up for once. A new pattern is due when it is first seen.
    """

    def __init__(self, context: MaintenanceContext, *, mirrors: Mirrors, jobs: Jobs, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="mirrors by patterns")
        self._catalog = context.catalog
        self._registry = context.registry
        self._clock = context.clock
        self._mirrors = mirrors
        self._jobs = jobs

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for repository in self._registry.listed():
            patterns = patterns_of(repository)
            if patterns and repository.active:
                try:
                    await self._follow(repository, {_name(each): each for each in patterns})
                except PkgrepoError as error:
                    log.warn("mirror of {repository}: {error}", repository=repository.path, error=str(error))

    async def _follow(self, repository: Repository, patterns: dict[str, MirrorPattern]) -> None:
        """Begin a job for the patterns that are due, and wait for it."""
        key = settings.mirror_key(repository.uid)
        text: str | None = await self._catalog.look(settings.get, key)
        noted = msgspec.json.decode(text or "{}", type=dict[str, int])
        now_ms = self._clock.now_ms()
        due = [
            name
            for name, each in patterns.items()
            if name not in noted or noted[name] + (seconds_of(each.every) or 0) * 1000 <= now_ms
        ]
        if not due:
            return
        try:
            uid = await self._mirrors.follow(repository, [patterns[each] for each in due], SYSTEM)
        except JobRunning:
            return  # it is checked again in a minute
        times = {name: now_ms if name in due else noted[name] for name in patterns}
        await self._catalog.write(settings.put, key, msgspec.json.encode(times).decode())
        job = await self._jobs.wait(uid)
        problems = job.result.get("problems_count", 0)
        if job.state != "done" or problems:
            reason = "; ".join(job.result.get("errors", ())) or f"{problems} problems, which the job {uid} lists"
            log.warn("mirror of {repository}: {reason}", repository=repository.path, reason=reason)


def _name(pattern: MirrorPattern) -> str:
    """What the time of a pattern is noted under; another one once it is changed."""
    return msgspec.json.encode(pattern).decode()
