"""Starts mirrors as jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve

from pkgrepo.errors import Invalid, RepositoryInactive
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.services import Services
from pkgrepo.mirroring.engine import MirrorRun
from pkgrepo.mirroring.locks.reading import read_lock
from pkgrepo.mirroring.locks.wanted import Lock
from pkgrepo.model import Actor, Repository
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
        if not request.locks:
            raise Invalid("there is no lock file", "/locks")
        lock = await self._services.pools.cpu(_read_all, request.locks, repository.format)
        data = {
            "on": repository.path,
            "repository": repository.uid,
            "by": actor.name,
            "locks": [each.name for each in request.locks],
            "only": list(request.only),
        }
        return await self._jobs.begin(KIND, repository.uid, data, partial(self._run, repository, lock, request.only))

    async def _run(
        self, repository: Repository, lock: Lock, only: Sequence[str], progress: Progress
    ) -> Mapping[str, Any]:
        format_ = self._formats[repository.format]
        return await MirrorRun(self._services, repository, format_, only=only).run(lock, progress)


def _read_all(locks: Sequence[LockFile], format_name: str) -> Lock:
    """What all lock files name. :raises Invalid: one cannot be read"""
    found = Lock()
    for index, each in enumerate(locks):
        try:
            lock = read_lock(each.name, each.text, format_name)
        except Invalid as error:
            raise evolve(error, pointer=f"/locks/{index}/text") from None
        found.wanted += lock.wanted
        found.left_out += lock.left_out
    return found
