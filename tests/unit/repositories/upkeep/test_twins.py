"""When the twins of the server are due, and what is recorded of them."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.errors import Conflict, NotFound
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.repositories.upkeep.twins import Exported, TwinPlan, Twins, TwinSchedule
from tests.support.catalog import MemoryCatalog
from tests.support.repositories import NOW
from tests.unit.repositories.upkeep.test_gc import StillClock


class Registry:
    """Knows no repository: the events of all are those of each."""

    async def refresh(self) -> None: ...

    def find(self, _storage: str, _name: str) -> None: ...


class Scene:
    """A server with one twin; ``error`` is what the next run meets."""

    def __init__(self) -> None:
        self.catalog, self.clock = MemoryCatalog(), StillClock(NOW)
        self.reactor = ReactorClock()
        self.jobs = Jobs(catalog=self.catalog, clock=self.clock, reactor=self.reactor)
        self.error: BaseException | None = None
        self.runs = 0
        self.twins = self.make()

    def make(self, target: str = "/srv/twin") -> Twins:
        plan = TwinPlan(name="py", repository="main/py", target=target, every_s=10.0)
        tools: Any = {"catalog": self.catalog, "registry": Registry(), "clock": self.clock, "jobs": self.jobs}
        return Twins([plan], self.write, **tools)

    async def write(self, _plan: TwinPlan, _progress: object) -> Exported:
        self.runs += 1
        if self.error is not None:
            raise self.error
        return Exported(files=3, written=2, removed=1, withheld=0, signed=True)

    async def look(self, later_s: float = 0) -> int:
        """What the schedule does after so many seconds. Returns how often the twin was written."""
        self.clock.ms += int(later_s * 1000)
        before = self.runs
        await TwinSchedule(self.twins, self.jobs, self.reactor).run_once()
        return self.runs - before


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_twin_is_written_at_once_and_then_each_day(scene: Scene) -> None:
    assert [await scene.look(), await scene.look(5), await scene.look(86_000), await scene.look(500)] == [1, 0, 0, 1]
    state = await scene.twins.state("py")
    assert (state.files, state.written, state.removed, state.signed, state.reason) == (3, 2, 1, True, "")
    assert await scene.twins.problem() == ""


async def test_one_that_failed_is_tried_each_minute_and_told(scene: Scene) -> None:
    await scene.look()
    written_ms = (await scene.twins.state("py")).written_ms
    scene.error = Conflict("the disk is gone")
    assert [await scene.look(90_000), await scene.look(30), await scene.look(40)] == [1, 0, 1]
    assert await scene.twins.problem() == "twin py cannot be written: the disk is gone"
    assert (await scene.twins.state("py")).written_ms == written_ms
    scene.error = None
    assert (await scene.look(60), await scene.twins.problem()) == (1, "")


async def test_other_settings_are_another_twin(scene: Scene) -> None:
    await scene.look()
    scene.twins = scene.make("/srv/other")
    assert [await scene.look(), await scene.look()] == [1, 0]
    scene.error = Conflict("it holds other things already")
    scene.twins = scene.make("/srv/taken")
    assert [await scene.look(), await scene.look()] == [1, 0]
    scene.twins, scene.error = scene.make("/srv/free"), None
    assert [await scene.look(), await scene.twins.problem()] == [1, ""]


async def test_a_stop_of_the_server_is_no_failure(scene: Scene) -> None:
    scene.error = CancelledError()
    await scene.look()
    assert await scene.twins.problem() == ""
    scene.error = None
    assert await scene.look() == 1


async def test_there_is_no_twin_of_another_name(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.twins.begin("absent", "test")
