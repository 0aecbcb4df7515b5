"""Patterns of proxies are followed when they are due, once, also across restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest_twisted
from attrs import define, field

from pkgrepo.mirroring.schedule import MirrorSchedule
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.proxy.schema import MirrorPattern
from pkgrepo.storage.catalog.server.jobs import Job, JobRunning

HOUR_MS = 3_600_000


@define
class World:
    """What a schedule works with: a catalog of settings, a registry of one proxy, and mirrors that only note."""

    patterns: list[dict[str, Any]]
    noted: dict[str, str] = field(factory=dict)
    now: int = HOUR_MS
    running: bool = False
    begun: list[list[str]] = field(factory=list)

    @property
    def schedule(self) -> MirrorSchedule:
        context: Any = self
        return MirrorSchedule(context, mirrors=context, jobs=context, reactor=context)

    catalog = registry = clock = property(lambda self: self)

    def now_ms(self) -> int:
        return self.now

    async def refresh(self) -> None:
        """Nothing changes."""

    def listed(self) -> Sequence[Any]:
        class Proxy:
            uid, path, active, type = "u", "main/p", True, RepositoryType.PROXY
            settings = {"mirror": {"patterns": self.patterns}}

        return [Proxy()]

    async def look(self, _get: Any, key: str) -> str | None:
        return self.noted.get(key)

    async def write(self, _put: Any, key: str, value: str) -> None:
        self.noted[key] = value

    async def follow(self, _repository: Repository, patterns: Sequence[MirrorPattern], _actor: Actor) -> str:
        if self.running:
            job: Any = None
            raise JobRunning(job)
        self.begun.append([each.packages[0] for each in patterns])
        return "job"

    async def wait(self, _uid: str) -> Any:
        class Done:
            state, result = "done", {"problems_count": 1}

        found: Job = Done()  # type: ignore[assignment]
        return found


@pytest_twisted.ensureDeferred
async def test_patterns_are_due_when_new_and_then_by_their_times() -> None:
    world = World([{"packages": ["a"], "every": "1h"}, {"packages": ["b"], "every": 7200}])
    for _ in range(2):
        await world.schedule.run_once()
    assert world.begun == [["a", "b"]]
    world.now += HOUR_MS
    await world.schedule.run_once()
    assert world.begun[1:] == [["a"]]
    world.now += HOUR_MS
    world.patterns.append({"packages": ["c"]})
    await world.schedule.run_once()
    assert world.begun[2:] == [["a", "b", "c"]]


@pytest_twisted.ensureDeferred
async def test_what_is_due_while_another_mirror_runs_stays_due() -> None:
    world = World([{"packages": ["a"]}], running=True)
    await world.schedule.run_once()
    world.running = False
    await world.schedule.run_once()
    assert world.begun == [["a"]]
