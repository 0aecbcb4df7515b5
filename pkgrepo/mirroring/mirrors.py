"""Starts mirrors as jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve

from pkgrepo.errors import Invalid, RepositoryInactive
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mirrored.locks import Lock
from pkgrepo.gateway.mirrored.reading import Formats, read_lock
from pkgrepo.gateway.services import Services
from pkgrepo.mirroring.engine import MirrorRun
from pkgrepo.mirroring.patterns import find_wanted, patterns_of
from pkgrepo.model import Actor, Repository
from pkgrepo.proxy.schema import MirrorPattern
from pkgrepo.repositories.upkeep.jobs import Jobs, Progress
from pkgrepo.repositories.upkeep.mirrors import KIND, LockFile, MirrorRequest


@define(eq=False, kw_only=True)
class Mirrors:
    """Starts mirrors; see L{pkgrepo.repositories.upkeep.mirrors.StartsMirrors}."""

    _services: Services
    _formats: Mapping[str, Format]
    _jobs: Jobs

    async def __call__(self, repository: Repository, request: MirrorRequest, actor: Actor) -> str:
        """Start a mirror as a job. Returns its id."""
        if not repository.active:
            raise RepositoryInactive(repository.path)
        patterns = patterns_of(repository)
        if not request.locks and not patterns:
            raise Invalid("there is no lock file, and the configuration has no mirror.patterns", "/locks")
        if not request.locks:
            return await self.follow(repository, patterns, actor)
        formats = {name: each.mirrored for name, each in self._formats.items()}
        lock = await self._services.pools.cpu(_read_all, request.locks, repository.format, formats)
        data = {
            "on": repository.path,
            "repository": repository.uid,
            "by": actor.name,
            "locks": [each.name for each in request.locks],
            "only": list(request.only),
        }
        return await self._jobs.begin(KIND, repository.uid, data, partial(self._run, repository, lock, request.only))

    async def follow(self, repository: Repository, patterns: Sequence[MirrorPattern], actor: Actor) -> str:
        """Start a mirror of what patterns name. Returns the id of the job. :raises JobRunning: another one runs"""
        names = [name for each in patterns for name in each.packages]
        data = {"on": repository.path, "repository": repository.uid, "by": actor.name, "patterns": names}
        return await self._jobs.begin(KIND, repository.uid, data, partial(self._run_patterns, repository, patterns))

    async def _run_patterns(
        self, repository: Repository, patterns: Sequence[MirrorPattern], progress: Progress
    ) -> Mapping[str, Any]:
        """One run for each pattern, whose results are added up."""
        format_ = self._formats[repository.format]
        found: dict[str, Any] = {}
        for each in patterns:
            lock = await find_wanted(self._services, format_, repository, each)
            result = await MirrorRun(self._services, repository, format_, only=each.only).run(lock, progress)
            found = {name: found[name] + value for name, value in result.items()} if found else dict(result)
        return found

    async def _run(
        self, repository: Repository, lock: Lock, only: Sequence[str], progress: Progress
    ) -> Mapping[str, Any]:
        format_ = self._formats[repository.format]
        return await MirrorRun(self._services, repository, format_, only=only).run(lock, progress)


def _read_all(locks: Sequence[LockFile], format_name: str, formats: Formats) -> Lock:
    """What all lock files name. :raises Invalid: one cannot be read"""
    found = Lock()
    for index, each in enumerate(locks):
        try:
            lock = read_lock(each.name, each.text, format_name, formats)
            for some in lock.wanted:
                found.want(some)
        except Invalid as error:
            raise evolve(error, pointer=f"/locks/{index}/text") from None
        found.left_out += lock.left_out
    return found
