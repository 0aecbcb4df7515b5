"""Tasks that run every so many seconds."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.periodic import PeriodicTask
from tests.support.inprocess_server import no_failures


class Work:
    """Counts flushes, and fails in those that it is told."""

    def __init__(self, *fails: int) -> None:
        self.count = 0
        self._fails = fails

    async def run(self) -> None:
        self.count += 1
        if self.count in self._fails:
            raise ValueError(self.count)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def periodic(work: Work, clock: Clock, **rest: Any) -> PeriodicTask:
    return PeriodicTask(work.run, clock, every_s=10, what="the work", **rest)


def test_work_runs_at_start_and_then_every_so_often(clock: Clock) -> None:
    work = Work()
    task = periodic(work, clock)
    task.startService()
    assert work.count == 1
    clock.pump([10, 10])
    assert work.count == 3
    task.stopService()
    assert (work.count, clock.getDelayedCalls()) == (3, [])


def test_a_call_under_way_is_cancelled_at_the_stop(clock: Clock) -> None:
    ended: list[object] = []

    async def work() -> None:
        await Deferred()

    task = PeriodicTask(work, clock, every_s=10, what="the work")
    with no_failures():
        task.startService()
        stopping = task.stopService()
        assert stopping is not None
        stopping.addBoth(ended.append)
    assert ended == [None]


def test_the_last_call_replaces_the_first(clock: Clock) -> None:
    work, last = Work(), Work()
    task = periodic(work, clock, last=last.run)
    task.startService()
    assert work.count == 0
    clock.pump([10, 10])
    assert work.count == 2
    ended: list[object] = []
    stopping = task.stopService()
    assert stopping is not None
    stopping.addBoth(ended.append)
    assert (work.count, last.count, ended, clock.getDelayedCalls()) == (2, 1, [None], [])


def test_a_call_that_fails_does_not_end_the_task(clock: Clock) -> None:
    work = Work(1, 3)
    task = periodic(work, clock, last=work.run)
    task.startService()
    clock.pump([10, 10])
    task.stopService()
    assert work.count == 3
